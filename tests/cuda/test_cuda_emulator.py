"""The emulator itself: CUDA's words mean what they mean on a device, and misuse is reported."""

import numpy as np
import pytest
from cuda_emulator import LaunchError, emulated_cuda, library, transfers
from devices import needs_emulator, needs_ptx, of_source

from gputree.backends.cuda import workspace

pytestmark = [*needs_emulator, of_source]

WORDS = r"""
extern "C" __global__ void words(int* o, unsigned* u, unsigned long long* q, double* d) {
    const unsigned all = 0xffffffffu;
    const int t = threadIdx.x, lane = t & 31;
    o[t] = __shfl_sync(all, t, 5) + 1000 * __shfl_sync(all, t, 3, 8);
    o[64 + t] = __shfl_up_sync(all, t, 3);
    o[128 + t] = __shfl_down_sync(all, t, 3, 16);
    o[192 + t] = __shfl_xor_sync(all, t, 31);
    o[256 + t] = __syncthreads_count(t < 10) * 4 + __syncthreads_and(t < 64) * 2
               + __syncthreads_or(t == 77);
    u[t] = __ballot_sync(all, lane % 3 == 0);
    u[64 + t] = __any_sync(all, lane == 40) * 2 + __all_sync(all, lane < 32);
    u[128 + t] = __match_any_sync(all, lane / 5);
    if (lane < 16) {
        u[192 + t] = __ballot_sync(0x0000ffffu, lane & 1);
        __syncwarp(0xffffu);
    } else {
        u[192 + t] = __ballot_sync(0xffff0000u, 1);
    }
    u[256 + t] = __reduce_add_sync(all, 1u) + __reduce_max_sync(all, (unsigned)lane);
    atomicAdd(&q[0], 1ull);
    atomicMax(&q[1], (unsigned long long)t << 33);
    atomicAdd(&d[0], 0.5);
    atomicMin(&o[320], -t);
    unsigned old = u[320], seen;
    do {
        seen = old;
        old = atomicCAS(&u[320], seen, seen + 3u);
    } while (old != seen);
    d[1 + t] = __shfl_xor_sync(all, t + 0.5, 1);
    o[321] = __popc(0xf0f0u) + __ffs(8) * 100 + __clz(1) * 10000;
}"""


@pytest.mark.parametrize(
    ("order", "ptx"),
    [
        ("ascending", None),
        ("descending", None),
        ("random", None),
        pytest.param("random", {}, marks=needs_ptx),
    ],
)
def test_words_of_warps_and_blocks(order, ptx):
    with emulated_cuda(order, ptx=ptx) as cupy:
        arrays = [cupy.zeros(400, dtype=t) for t in (np.int32, np.uint32, np.uint64, np.float64)]
        cupy.RawModule(code=WORDS).get_function("words")((1,), (64,), tuple(arrays))
        o, u, q, d = (array.get() for array in arrays)
    t = np.arange(64)
    warp, lane = t // 32 * 32, t % 32
    assert (o[:64] == warp + 5 + 1000 * (t // 8 * 8 + 3)).all()
    assert (o[64:128] == np.where(lane < 3, t, t - 3)).all()
    assert (o[128:192] == np.where(t % 16 + 3 >= 16, t, t + 3)).all()
    assert (o[192:256] == warp + 31 - lane).all()
    assert (o[256:320] == 42).all()
    assert (u[:64] == sum(1 << i for i in range(0, 32, 3))).all()
    assert (u[64:128] == 1).all()
    assert (u[128:192] == [sum(1 << k for k in range(32) if k // 5 == i // 5) for i in lane]).all()
    assert (u[192:256] == np.where(lane < 16, 0xAAAA, 0xFFFF0000)).all()
    assert (u[256:320] == 32 + 31).all()
    assert (q[0], q[1], d[0], o[320], u[320]) == (64, 63 << 33, 32, -63, 192)
    assert (d[1:65] == (t ^ 1) + 0.5).all()
    assert o[321] == 8 + 400 + 310000


def launch(body: str, check: bool = False, fill: int = 0xCD) -> np.ndarray:
    """Result in o of a block of 64 threads; n is 3 and x is 1e20."""
    code = f'extern "C" __global__ void k(int* o, int n, float x) {{{body}}}'
    with emulated_cuda(check=check, fill=fill) as cupy:
        o = cupy.zeros(64, dtype=np.int32)
        kernel = cupy.RawModule(code=code).get_function("k")
        kernel((1,), (64,), (o, np.int32(3), np.float32(1e20)), shared_mem=256)
        return o.get()


@pytest.mark.parametrize(
    ("body", "message", "check"),
    [
        ("if (threadIdx.x < 5) __syncthreads(); else __syncwarp();", "deadlock", False),
        ("if (threadIdx.x & 1) __syncthreads();\nelse __syncthreads();", "divergent", False),
        ("o[0] = __ballot_sync(0xfu, 1);", "does not name it", False),
        (
            "if (threadIdx.x & 1) o[0] = __shfl_sync(~0u, 1, 0);\nelse __syncwarp();",
            "different collectives",
            False,
        ),
        ("o[0] = 5 / (n - 3);", "division by zero", False),
        ("*(volatile int*)(long long)n = 1;", "illegal memory access", False),
        ("assert(n == 4);", "assert", False),
        ("o[threadIdx.x + 1] = 1;", "out of bounds write", True),
        ("o[0] = threadIdx.x;", "race", True),
        (
            "__shared__ int s[64]; s[threadIdx.x] = 0; __syncthreads();"
            "s[threadIdx.x] = n; o[threadIdx.x] = s[n];",
            "race",
            True,
        ),
        ("__shared__ int s[64]; o[threadIdx.x] = s[n];", "undefined memory, shared memory", True),
        ("__shared__ int s[64]; atomicAdd(&s[n], 1);", "undefined memory, shared memory", True),
        ("extern __shared__ int s[]; o[n] = s[n];", "undefined memory, dynamic", True),
        ("o[1] = 1u << (n + 29);", "undefined behaviour", True),
        ("if (!threadIdx.x) o[1] = (int)x;", "undefined behaviour", True),
    ],
)
def test_misuse_is_reported(body, message, check):
    with pytest.raises(LaunchError, match=message):
        launch(body, check)
    usable = launch("o[threadIdx.x] = threadIdx.x;", check)
    assert (usable == np.arange(64)).all()


def test_endless_loops_end(monkeypatch):
    monkeypatch.setattr(library, "LAUNCH_SECONDS", 1)
    with pytest.raises(LaunchError, match="time limit"):
        launch("while (atomicAdd(&o[0], 0) == 0) { }")


@pytest.mark.parametrize("fill", [0x00, 0x01, 0xCD, 0xFF])
def test_fresh_memory_holds_anything(fill):
    static = "__shared__ int s[64]; o[threadIdx.x] = s[threadIdx.x];"
    dynamic = "extern __shared__ int s[]; o[threadIdx.x] = s[threadIdx.x];"
    for left in (launch(static, fill=fill), launch(dynamic, fill=fill)):
        assert (left.view(np.uint8) == fill).all()
    with emulated_cuda(fill=fill) as cupy:
        assert (cupy.empty(5, dtype=np.float32).get().view(np.uint8) == fill).all()


# Two kernels on 64 places: what one writes the other may read.
PLACES = r"""
extern "C" __global__ void put(int* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = 1; }
extern "C" __global__ void take(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }
extern "C" __global__ void bytes(const unsigned char* a, int* b) {
    b[threadIdx.x] = ((const int*)a)[threadIdx.x];
}
extern "C" __global__ void add(int* a) { atomicAdd(&a[0], 1); }
"""


@pytest.fixture
def places():
    """The module cupy and the kernels of `PLACES`, checked."""
    with emulated_cuda(check=True) as cupy:
        module = cupy.RawModule(code=PLACES)

        def call(name, *arguments):
            module.get_function(name)((1,), (64,), arguments)

        yield cupy, call


@pytest.mark.parametrize("written", [0, 63, 64])
def test_kernels_read_what_was_written(places, written):
    """Written by another kernel, in an earlier launch, through a view, as words of bytes."""
    cupy, call = places
    a, b = cupy.empty((3, 64), dtype=np.int32), cupy.zeros(64, dtype=np.int32)
    call("put", a[1], np.int32(written))
    for name, view in (("take", a[1]), ("bytes", a[1].view(np.uint8))):
        if written == 64:
            call(name, view, b)
            assert b.get().all()
        else:
            with pytest.raises(LaunchError, match=r"undefined memory, array 0\[\d+\]"):
                call(name, view, b)
    with pytest.raises(LaunchError, match="undefined memory, array 0"):
        call("add", a[0])


def test_the_host_defines_memory(places):
    cupy, call = places
    b = cupy.zeros(64, dtype=np.int32)
    for define in (
        lambda a: a.fill(0),
        lambda a: a.set(np.zeros(64, np.int32)),
        lambda a: a.__setitem__(slice(None), b),
    ):
        a = cupy.empty(64, dtype=np.int32)
        define(a)
        call("take", a, b)
        a.get()


def test_functions_and_copies_read_defined_memory(places):
    cupy, _ = places
    a = cupy.empty((64, 2), dtype=np.int32)
    a[:60] = 1
    view = a.reshape(2, 64)
    assert (a[:60].get() == 1).all()
    assert int(a[cupy.asarray(np.array([3, 59]))].sum()) == 4
    for read in (
        a.get,
        view.get,
        a.sum,
        lambda: a + 1,
        lambda: a[60, 0],
        lambda: a[cupy.asarray(np.array([3, 60]))],
        lambda: cupy.sort(a),
        lambda: cupy.concatenate([a[:60], a]),
        lambda: cupy.ascontiguousarray(a[:, 1]),
        lambda: cupy.zeros((64, 2)).__setitem__(slice(None), a),
    ):
        with pytest.raises(LaunchError, match="undefined memory"):
            read()


@pytest.mark.parametrize("beyond", [0, 63, 64, 200, -1])
def test_bounds_are_those_of_each_array(beyond):
    """Arrays of one allocation are adjacent: after 64 numbers comes the next array."""
    code = 'extern "C" __global__ void put(int* a, long long i) { a[i] = 1; }'
    with emulated_cuda(check=True) as cupy:
        arrays = workspace.allocate(*(((64 << at,), np.int32) for at in (1, 0, 2)))
        for array in arrays:
            array.fill(7)
        put = cupy.RawModule(code=code).get_function("put")
        put((1,), (1,), (arrays[0][64:], 3))
        if beyond in (0, 63):
            put((1,), (1,), (arrays[1], beyond))
            assert [array.get().sum() for array in arrays] == [128 * 7 - 6, 64 * 7 - 6, 256 * 7]
            return
        with pytest.raises(LaunchError, match="out of bounds write"):
            put((1,), (1,), (arrays[1], beyond))


# --------------------------------------------------------------------------- side by side
# Blocks keep which one they are in shared memory of both kinds, and take two numbers each.
TURNS = r"""
extern "C" __global__ void turns(int* taken, int* pairs) {
    extern __shared__ int own[];
    __shared__ int also[1024], count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    own[threadIdx.x] = also[threadIdx.x] = blockIdx.x;
    atomicAdd(&count, 1);
    atomicAdd(&taken[2], 1);
    __syncthreads();
    const int next = (threadIdx.x + 1) % blockDim.x;
    if (own[next] != blockIdx.x || also[next] != blockIdx.x) atomicAdd(&taken[3], 1);
    if (threadIdx.x > 0) return;
    if (count != blockDim.x) atomicAdd(&taken[3], 1);
    const int first = atomicAdd(&taken[0], 1);
    pairs[first] = atomicAdd(&taken[1], 1);
}"""


def take_turns(order: str, seed: int, threads: int = 32, check: bool = False) -> list[int]:
    """Second numbers that 50 blocks took, by their first ones."""
    with emulated_cuda(order, check, seed=seed) as cupy:
        taken, pairs = cupy.zeros(4, dtype=np.int32), cupy.zeros(50, dtype=np.int32)
        launch = cupy.RawModule(code=TURNS).get_function("turns")
        launch((50,), (threads,), (taken, pairs), shared_mem=4 * threads)
        assert taken.get().tolist() == [50, 50, 50 * threads, 0]
        assert sorted(pairs.get()) == list(range(50))
        return pairs.get().tolist()


def test_what_blocks_do_between_atomics_comes_in_any_order():
    plain = list(range(50))
    assert take_turns("ascending", 0) == take_turns("descending", 0) == plain
    orders = {tuple(take_turns("random", seed)) for seed in range(5)}
    assert len(orders) == 5
    assert take_turns("random", 3) == take_turns("random", 3)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("threads", [1, 33, 256, 1024])
def test_each_block_has_its_own_shared_memory(threads, check):
    for seed in range(3):
        take_turns("random", seed, threads, check)


@pytest.mark.parametrize("order", ["ascending", "random"])
def test_races_between_blocks_are_reported(order):
    code = 'extern "C" __global__ void put(int* a) { if (blockIdx.x < 2) a[0] = 1; }'
    with emulated_cuda(order, check=True) as cupy:
        put = cupy.RawModule(code=code).get_function("put")
        put((1,), (1,), (cupy.zeros(1, dtype=np.int32),))
        with pytest.raises(LaunchError, match="race"):
            put((5,), (1,), (cupy.zeros(1, dtype=np.int32),))


def test_shared_memory_of_both_kinds_counts():
    """Shared memory of functions counts for all kernels, which may call them."""
    code = r"""
__device__ void fill() { __shared__ int s[256]; s[threadIdx.x] = 0; }
extern "C" __global__ void plain(int n) { if (n < 0) fill(); }
extern "C" __global__ void wide(int n) { __shared__ double s[1024]; if (n < 0) fill(); s[0] = n; }
"""
    with emulated_cuda() as cupy:
        module = cupy.RawModule(code=code)
        for name, static in (("plain", 1024), ("wide", 1024 + 8192)):
            kernel = module.get_function(name)
            kernel((1,), (1,), (np.int32(1),), shared_mem=48 * 1024 - static)
            with pytest.raises(LaunchError, match=f"beside {static} of static ones"):
                kernel((1,), (1,), (np.int32(1),), shared_mem=48 * 1024 - static + 1)


# ------------------------------------------------------------------------------- the stand-in
def test_arrays_of_devices_do_not_mix():
    with emulated_cuda(devices=2) as cupy:
        assert cupy.cuda.runtime.getDeviceCount() == 2
        here = cupy.zeros(64, dtype=np.int32)
        with cupy.cuda.Device(1):
            there = cupy.zeros(64, dtype=np.int32)
            made = there + 1
        assert [a.device.id for a in (here, there[3:], made)] == [0, 1, 1]
        module = cupy.RawModule(code=PLACES)
        kernel = module.get_function("take")
        for mixed in (
            lambda: there + 1,
            lambda: here + there,
            lambda: there.sum(),
            lambda: here[there],
            lambda: there.fill(0),
            lambda: kernel((1,), (64,), (there, here)),
        ):
            with pytest.raises(LaunchError, match="an array of device 1 while device 0 is current"):
                mixed()
        with cupy.cuda.Device(1):
            with pytest.raises(LaunchError, match="loaded on device 0"):
                kernel((1,), (64,), (made, there))
            module.get_function("take")((1,), (64,), (made, there))
        assert there.get().all()


def test_arguments_are_of_the_kernels_types():
    code = 'extern "C" __global__ void k(const float* a, long long n, double d) {}'
    with emulated_cuda() as cupy:
        kernel = cupy.RawModule(code=code).get_function("k")
        a = cupy.zeros(4, dtype=np.float32)
        kernel((1,), (32,), (a, 1, 2.0))
        for wrong in [
            (a, 1),
            (a, 1, 2),
            (a, np.int32(1), 2.0),
            (a, 1, np.float32(2)),
            (cupy.zeros(4, dtype=np.float64), 1, 2.0),
            (np.zeros(4, np.float32), 1, 2.0),
            (a[::2], 1, 2.0),
        ]:
            with pytest.raises(TypeError):
                kernel((1,), (32,), wrong)
        for grid, block in [((1,), (2048,)), ((1, 70000), (32,)), ((0,), (32,))]:
            with pytest.raises(LaunchError):
                kernel(grid, block, (a, 1, 2.0))


def test_host_and_device_never_mix():
    with emulated_cuda() as cupy:
        a = cupy.asarray(np.arange(4))
        for mixed in (lambda: np.asarray(a), lambda: np.add(a, 1), lambda: a + np.arange(4)):
            with pytest.raises(TypeError):
                mixed()
        with pytest.raises(AttributeError):
            cupy.einsum  # noqa: B018, not among what the stand-in offers
        before = transfers["to host"]
        assert int(a.sum()) == 6
        assert transfers["to host"] == before + 1
