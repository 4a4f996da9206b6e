"""Every Python whose PYTHONPATH begins with this folder has the emulator in the place of a GPU.

A rehearsal of `.ci/gpu` runs so (`.ci/gpu -e`). The device's name says that it is emulated.
"""

import sys
from pathlib import Path

HELPERS = Path(__file__).parents[1]


sys.path.insert(0, str(HELPERS))
try:
    from cuda_emulator.stand_in import make_module
finally:
    sys.path.remove(str(HELPERS))

sys.modules["cupy"] = make_module(check=False, replace=None, fill=0xCD, devices=1)
