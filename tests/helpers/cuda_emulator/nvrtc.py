"""NVRTC from Python's packages: CUDA C++ to PTX, without CuPy and without a device."""

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# What CuPy adds to the options it is given.
CUPY_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")


class Nvrtc:
    """A library of NVRTC, called as CuPy's module is."""

    def __init__(self, path: Path) -> None:
        for builtins in path.parent.glob("libnvrtc-builtins.so.*"):  # which it looks for elsewhere
            ctypes.CDLL(str(builtins))
        self._library = ctypes.CDLL(str(path))
        self.version = tuple(self._integers("nvrtcVersion", 2))

    def architectures(self) -> list[int]:
        (count,) = self._integers("nvrtcGetNumSupportedArchs", 1)
        found = (ctypes.c_int * count)()
        self._library.nvrtcGetSupportedArchs(found)
        return list(found)

    def compile(self, text: str, options: tuple[str, ...]) -> tuple[str, str]:
        """The log and the PTX of a source."""
        program, arguments = ctypes.c_void_p(), [option.encode() for option in options]
        self._library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None
        )
        failed = self._library.nvrtcCompileProgram(
            program, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments)
        )
        log = self._text("ProgramLog", program)
        assert not failed, log
        ptx = self._text("PTX", program)
        self._library.nvrtcDestroyProgram(ctypes.byref(program))
        return log, ptx

    def _integers(self, function: str, count: int) -> list[int]:
        numbers = [ctypes.c_int() for _ in range(count)]
        getattr(self._library, function)(*map(ctypes.byref, numbers))
        return [number.value for number in numbers]

    def _text(self, what: str, program: Any) -> str:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, text)
        return text.value.decode()


def libraries() -> list[Path]:
    """Libraries of NVRTC that Python packages have brought."""
    spec = find_spec("nvidia")
    folders = map(Path, spec.submodule_search_locations or []) if spec else []
    return sorted(path for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*"))


@cache
def newest() -> Nvrtc:
    """The library of the highest version."""
    return max(map(Nvrtc, libraries()), key=lambda library: library.version)
