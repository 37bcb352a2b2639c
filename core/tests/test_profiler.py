"""The profiler: which events it sees, how they nest, are summed up, printed and exported."""

import json
import sqlite3
import threading
import time
from contextlib import closing

import pytest

import flambeau as fb
from flambeau._autograd import engine
from flambeau._dispatch.bound import _bound, bind
from flambeau.autograd import profiler
from flambeau.autograd.profiler import EventList, FunctionEvent, profile, record_function
from flambeau.plugin.host import host


@pytest.fixture
def x(device):
    return fb.tensor([[1.0, 2.0], [3.0, 4.0]], device=device, requires_grad=True)


def names(events):
    return [e.name for e in events]


def only(events, name):
    (found,) = [e for e in events if e.name == name]
    return found


@pytest.mark.parametrize("recorded", [False, True])
def test_ops_of_functions_that_repeat_plans_are_seen_as_those_of_the_function(x, recorded):
    def f(a):
        return (a * 2).tanh().sum()

    def called(function):
        with profile() as prof:
            found = function(x)
            if recorded:
                found.backward()
        return names(prof.function_events)

    forms = f, fb.compile(f, fullgraph=True), fb.jit.script(f)
    with fb.set_grad_enabled(recorded):
        for form in forms:
            for _ in range(14):
                found = form(x)
            if recorded:
                found.backward()
        wanted, *seen = map(called, forms)
        assert "tanh" in wanted
        assert seen == [wanted, wanted]
        replays = forms[1].explain().replays
        forms[1](x)
        assert forms[1].explain().replays == replays + 1


def test_forward_operations_and_backward_nodes_are_seen_in_order(x):
    with profile() as prof:
        y = (x * 2).sum()
        y.backward()
    top = names(e for e in prof.function_events if e.cpu_parent is None)
    assert [n for n in top if n in ("mul", "sum", "SumBackward0", "MulBackward0")] == [
        "mul", "sum", "SumBackward0", "MulBackward0",
    ]  # fmt: skip


def test_kernels_of_a_backward_formula_are_children_of_its_node(x):
    y = (x * 2).sum()
    with profile() as prof:
        y.backward()
    node = only(prof.function_events, "MulBackward0")
    assert names(node.cpu_children) == ["mul"]
    assert node.scope == 1


def test_views_creation_and_writes_are_seen(device):
    with profile() as prof:
        y = fb.zeros(3, device=device)
        y[1:].fill_(2.0)
    assert {"full", "slice"} <= set(names(prof.function_events))


def test_views_made_of_several_nodes_do_not_count_hand_overs(x):
    values, _ = x.sort()
    y = values.sum()
    with profile() as prof:
        y.backward()
    assert names(prof.function_events).count("SortBackward0") == 1


def test_blocks_of_record_function_contain_what_ran_in_them(x):
    with profile() as prof:
        with record_function("outer"):
            with record_function("inner"):
                x * 2
            x + 1
        x - 1
    outer, inner = (only(prof.function_events, n) for n in ("outer", "inner"))
    assert names(outer.cpu_children) == ["inner", "add"]
    assert names(inner.cpu_children) == ["mul"]
    assert only(prof.function_events, "sub").cpu_parent is None
    assert outer.scope == 7


def test_record_function_decorates_functions_even_recursive_ones(x):
    @record_function("step")
    def step(n):
        return x * n if n == 0 else step(n - 1) + 1

    with profile() as prof:
        step(2)
    steps = [e for e in prof.function_events if e.name == "step"]
    assert [e.cpu_parent for e in steps] == [None, steps[0], steps[1]]


def test_record_function_does_nothing_without_a_profiler(x):
    with record_function("unseen"):
        assert (x * 2).requires_grad


def test_events_end_when_an_error_passes_through(x):
    with profile() as prof:
        with pytest.raises(RuntimeError):
            x @ fb.ones(3, 3, device=x.device)
        x + 1
    assert only(prof.function_events, "add").cpu_parent is None


def test_results_and_gradients_are_the_same_under_the_profiler(x):
    def gradient():
        x.grad = None
        ((x.exp() * x[0]).softmax(1)[:, 0].sum() + x.t().sum()).backward()
        return x.grad.tolist()

    plain = gradient()
    with profile():
        profiled = gradient()
    assert profiled == plain


def test_nothing_is_wrapped_before_and_after(x):
    be = bind(x.device)
    before = dict(be.__dict__), dict(be.kernels)
    with profile():
        assert be.__dict__["add"] is not before[0]["add"]
    assert (dict(be.__dict__), dict(be.kernels)) == before
    assert engine.watchers == []


def test_profiles_nest_and_each_sees_its_own_block(x):
    with profile() as outer:
        x + 1
        with profile() as inner:
            x * 2
    assert names(inner.function_events) == ["mul"]
    assert [n for n in names(outer.function_events) if n in ("add", "mul")] == ["add", "mul"]


def test_shapes_are_kept_on_request(x):
    with profile(record_shapes=True) as with_shapes:
        x @ x[0]
    with profile() as without:
        x @ x[0]
    assert only(with_shapes.function_events, "matmul").input_shapes == [[2, 2], [2]]
    assert only(without.function_events, "matmul").input_shapes == []


def test_sequence_numbers_join_an_operation_with_its_node(x):
    with profile() as prof:
        y = x.exp()
        z = y.sum()
        z.backward()
        with fb.no_grad():
            x.sin()
    events = prof.function_events
    assert only(events, "exp").sequence_nr == y.grad_fn.seq
    assert only(events, "ExpBackward0").sequence_nr == y.grad_fn.seq
    assert only(events, "sum").sequence_nr == z.grad_fn.seq
    assert only(events, "sin").sequence_nr == -1
    assert all(e.sequence_nr == -1 for e in only(events, "ExpBackward0").cpu_children)


def test_events_of_several_threads_are_kept_apart(x):
    together = threading.Barrier(3)  # a thread that starts after another's end may take its number

    def work(name):
        together.wait(60)
        with record_function(name):
            for _ in range(5):
                x * 2
        together.wait(60)

    with profile() as prof:
        threads = [
            threading.Thread(target=work, args=(f"worker {i}",), daemon=True) for i in range(3)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert not any(t.is_alive() for t in threads), "a thread hangs"
        x + 1
    blocks = [e for e in prof.function_events if e.name.startswith("worker")]
    assert len({e.thread for e in blocks}) == 3
    for block in blocks:
        assert names(block.cpu_children) == ["mul"] * 5
        assert {c.thread for c in block.cpu_children} == {block.thread}
    assert only(prof.function_events, "add").thread not in {e.thread for e in blocks}


def test_a_block_still_open_in_another_thread_ends_with_the_profile():
    entered, leave = threading.Event(), threading.Event()

    def work():
        with record_function("long"):
            entered.set()
            leave.wait(60)

    with profile() as prof:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        assert entered.wait(60)
    leave.set()
    thread.join(60)
    assert not thread.is_alive(), "the thread hangs"
    assert only(prof.function_events, "long").cpu_time_total > 0


def test_times_are_microseconds_and_self_time_leaves_the_children_out():
    with profile() as prof, record_function("outer"):
        time.sleep(0.004)
        with record_function("inner"):
            time.sleep(0.008)
    outer, inner = prof.function_events
    assert 8_000 <= inner.cpu_time_total < 500_000
    assert outer.cpu_time_total >= inner.cpu_time_total + 4_000
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total)
    assert prof.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert outer.time_range.start <= inner.time_range.start <= inner.time_range.end


def test_averages_sum_up_events_of_one_name():
    events = EventList(
        [
            FunctionEvent(0, "add", 0, 0.0, 4.0),
            FunctionEvent(1, "mul", 0, 5.0, 6.0),
            FunctionEvent(2, "add", 0, 7.0, 9.0),
        ]
    )
    add, mul = events.key_averages()
    assert (add.key, add.count, add.cpu_time_total, add.cpu_time) == ("add", 2, 6.0, 3.0)
    assert (mul.key, mul.count, mul.cpu_time_total) == ("mul", 1, 1.0)
    total = events.total_average()
    assert (total.key, total.count, total.self_cpu_time_total) == ("Total", 3, 7.0)


def test_averages_may_keep_shapes_apart(x):
    with profile(record_shapes=True) as prof:
        x * x
        x[0] * x[0]
        x * x
    counts = {
        str(e.input_shapes): e.count
        for e in prof.key_averages(group_by_input_shape=True)
        if e.key == "mul"
    }
    assert counts == {"[[2, 2], [2, 2]]": 2, "[[2], [2]]": 1}
    assert only_key(prof.key_averages(), "mul").count == 3


def only_key(averages, key):
    (found,) = [e for e in averages if e.key == key]
    return found


def test_no_events_have_an_average_of_zero():
    total = EventList().total_average()
    assert (total.count, total.cpu_time, total.cuda_time) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0, "0.000us"), (999.4, "999.400us"), (1000, "1.000ms"), (2_500_000, "2.500s")],
)
def test_times_are_printed_in_the_unit_that_fits(microseconds, text):
    assert profiler.format_time(microseconds) == text


def listed(table):
    return [line.split()[0] for line in table.splitlines() if "us" in line and "total:" not in line]


@pytest.fixture
def events():
    a = FunctionEvent(0, "a", 0, 0.0, 10.0)
    b = FunctionEvent(1, "b", 0, 1.0, 9.0, self_cuda_time=5.0)
    c = FunctionEvent(2, "c", 0, 20.0, 21.0, self_cuda_time=50.0)
    d = FunctionEvent(3, "a", 0, 30.0, 31.0)
    a.append_cpu_child(b)
    return EventList([a, b, c, d], use_cuda=True)


@pytest.mark.parametrize(
    ("key", "order"),
    [
        (None, ["a", "b", "c"]),
        ("count", ["a", "b", "c"]),
        ("cpu_time", ["b", "a", "c"]),
        ("cpu_time_total", ["a", "b", "c"]),
        ("self_cpu_time_total", ["b", "a", "c"]),
        ("cuda_time", ["c", "b", "a"]),
        ("cuda_time_total", ["c", "a", "b"]),
        ("self_cuda_time_total", ["c", "b", "a"]),
    ],
)
def test_tables_are_sorted_by_every_documented_key(key, order, events):
    assert listed(events.key_averages().table(sort_by=key)) == order


def test_tables_show_averages_totals_shares_and_counts(events):
    table = events.key_averages().table()
    row = next(line.split() for line in table.splitlines() if line.split()[:1] == ["a"])
    # name, self %, self, total %, total, average, CUDA: self %, self, total, average, calls
    assert row == [
        "a", "25.00%", "3.000us", "91.67%", "11.000us", "5.500us",
        "0.00%", "0.000us", "5.000us", "2.500us", "2",
    ]  # fmt: skip
    assert "Self CPU time total: 12.000us" in table
    assert "Self CUDA time total: 55.000us" in table


def test_tables_are_cut_to_rows_widths_and_top_level_events(events):
    assert listed(events.table(row_limit=2)) == ["a", "b"]
    assert listed(events.table(row_limit=-1)) == ["a", "b", "c", "a"]
    assert listed(events.table(top_level_events_only=True)) == ["a", "c", "a"]
    long = EventList([FunctionEvent(0, "n" * 80, 0, 0.0, 1.0)])
    assert "n" * 7 + "..." in long.table(max_name_column_width=10)
    assert "n" * 8 not in long.table(max_name_column_width=10)
    assert long.table(header="My run").startswith("My run\n")


def test_tables_have_columns_only_for_what_was_recorded(x):
    with profile() as prof:
        x * 2
    assert "CUDA" not in prof.table()
    assert "Input Shapes" not in prof.table()
    with profile(record_shapes=True) as prof:
        x * 2
    assert "[[2, 2], []]" in prof.table()


def test_an_unknown_sort_key_is_refused_with_the_known_ones(events):
    with pytest.raises(ValueError, match="'bogus'; valid keys are cpu_time, cuda_time"):
        events.table(sort_by="bogus")


def test_printing_a_profile_or_its_averages_prints_the_table(x):
    with profile() as prof:
        x * 2
    assert str(prof) == prof.table()
    assert str(prof.key_averages()) == prof.key_averages().table()


def test_an_empty_profile_has_an_empty_table():
    with profile() as prof:
        pass
    assert listed(prof.table()) == []
    assert "Self CPU time total: 0.000us" in prof.table()


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.table(),
        lambda p: p.key_averages(),
        lambda p: p.total_average(),
        lambda p: p.self_cpu_time_total,
        lambda p: p.function_events,
        lambda p: p.export_chrome_trace("never-written.json"),
    ],
)
def test_results_cannot_be_read_before_the_block_has_ended(use):
    prof = profile()
    with pytest.raises(RuntimeError, match="didn't finish running"):
        use(prof)
    with prof, pytest.raises(RuntimeError, match="didn't finish running"):
        use(prof)


def test_an_unfinished_profile_can_be_printed():
    assert str(profile()) == "<unfinished torch.autograd.profiler.profile>"


def test_a_profile_is_entered_once():
    prof = profile()
    with prof:
        pass
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()


def test_a_disabled_profile_does_nothing(x):
    with profile(enabled=False) as prof:
        x * 2
        assert engine.watchers == []
    assert len(prof.function_events) == 0


def test_use_cuda_warns_without_a_cuda_device():
    if "cuda" in host.device_types():
        pytest.skip("a CUDA backend is installed")
    with pytest.warns(UserWarning, match="no CUDA device"):
        prof = profile(use_cuda=True)
    assert prof.use_cuda is False


def test_the_chrome_trace_has_an_event_per_call_and_arrows_from_forward_to_backward(x, tmp_path):
    with profile(record_shapes=True) as prof, record_function("block"):
        x.exp().sum().backward()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    complete = {e["name"]: e for e in events if e["ph"] == "X"}
    assert {"block", "exp", "sum", "ExpBackward0", "SumBackward0"} <= set(complete)
    assert complete["exp"]["args"]["Input Dims"] == [[2, 2]]
    assert complete["block"]["cat"] == "user_annotation"
    assert complete["block"]["dur"] >= complete["exp"]["dur"] > 0
    for e in complete.values():
        assert e["ts"] >= complete["block"]["ts"]
        assert {"pid", "tid", "ts", "dur"} <= set(e)
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    arrows = {(starts[i], ends[i]) for i in starts}
    assert (complete["exp"]["ts"], complete["ExpBackward0"]["ts"]) in arrows
    assert (complete["sum"]["ts"], complete["SumBackward0"]["ts"]) in arrows
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == ["thread 0"]


class Clock:
    """What a CUDA backend offers to profilers: time stamps in its own stream, and ranges."""

    def __init__(self):
        self.now = 0.0
        self.ranges = []
        self.open = []

    def record_event(self, index):
        self.now += 1.0
        return self.now

    def elapsed_ms(self, first, last):
        return last - first

    def synchronize(self, index):
        pass

    def current_device(self):
        return 0

    def range_push(self, name):
        self.open.append(name)
        self.ranges.append((len(self.open), name))

    def range_pop(self):
        self.open.pop()


@pytest.fixture
def clock(monkeypatch):
    """A second face of the reference device: a device of type cuda with a clock."""
    ref = bind("ref")
    clock = Clock()
    fake = type("Bound", (), {})()
    fake.__dict__.update(ref.__dict__)
    fake.device = fb.device("cuda", 0)
    fake.kernels = dict(ref.kernels)
    fake.backend = clock
    monkeypatch.setitem(_bound, ("cuda", None), fake)
    monkeypatch.setitem(_bound, ("cuda", 0), fake)
    clock.be = fake
    return clock


@pytest.fixture
def on_clock(clock):
    array = bind("ref").host_array([1.0, 2.0], (2,), fb.float32)
    return lambda name, *args: getattr(clock.be, name)(array, *args)


def test_cuda_times_come_from_the_devices_own_clock(on_clock):
    with profile(use_cuda=True) as prof:
        on_clock("exp")
        with record_function("block"):
            on_clock("sin")
    assert only(prof.function_events, "exp").cuda_time_total == 1000.0
    assert only(prof.function_events, "block").cuda_time_total == 1000.0
    assert only(prof.function_events, "block").self_cuda_time_total == 0.0
    assert prof.function_events.self_cuda_time_total == 2000.0
    assert "Self CUDA time total: 2.000ms" in prof.table(sort_by="cuda_time_total")


def test_nvtx_ranges_carry_sequence_numbers(clock, device):
    x = fb.ones(2, device=device, requires_grad=True)
    with profiler.emit_nvtx():
        y = x.exp()
        y.backward(fb.ones(2, device=device))
    number = y.grad_fn.seq
    assert (1, f"exp, seq = {number}") in clock.ranges
    assert (1, f"ExpBackward0, stashed seq = {number}") in clock.ranges
    assert (2, "mul, seq = 0") in clock.ranges
    assert clock.open == []


def test_nvtx_ranges_show_shapes_on_request(clock, device):
    x = fb.ones(2, 3, device=device)
    with profiler.emit_nvtx(record_shapes=True):
        fb.exp(x)
    assert clock.ranges[-1][1].endswith("sizes = [[2, 3]]")


def test_nvtx_needs_a_cuda_device():
    if "cuda" in host.device_types():
        pytest.skip("a CUDA backend is installed")
    with pytest.raises(RuntimeError, match="NVTX ranges need a CUDA device"):
        profiler.emit_nvtx().__enter__()


def test_nvtx_disabled_does_nothing(x):
    with profiler.emit_nvtx(enabled=False):
        x * 2
        assert engine.watchers == []


@pytest.fixture
def nvprof(tmp_path):
    """A file as nvprof writes it: two ranges, one in the other, three kernels, times in ns."""
    path = tmp_path / "run.prof"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT)")
        db.executemany(
            "INSERT INTO StringTable VALUES (?, ?)", [(1, "outer"), (2, "inner"), (9, "k")]
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER "
            "(_id_ INTEGER PRIMARY KEY, id INT, name INT, timestamp INT)"
        )
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER (id, name, timestamp) VALUES (?, ?, ?)",
            [(7, 1, 5_000_000), (8, 2, 5_010_000), (8, 0, 5_030_000), (7, 0, 5_100_000)],
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME "
            "(_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT, correlationId INT)"
        )
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (cbid, start, end, correlationId) "
            "VALUES (211, ?, ?, ?)",
            [(5_015_000, 5_016_000, 1), (5_050_000, 5_051_000, 2), (9_000_000, 9_001_000, 3)],
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL "
            "(_id_ INTEGER PRIMARY KEY, name INT, start INT, end INT, correlationId INT)"
        )
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (name, start, end, correlationId) "
            "VALUES (9, ?, ?, ?)",
            [(6_000_000, 6_003_000, 1), (6_100_000, 6_104_000, 2), (9_100_000, 9_200_000, 3)],
        )
        db.commit()
    return path


def test_nvprof_ranges_become_nested_events_with_the_times_of_their_kernels(nvprof):
    outer, inner = profiler.load_nvprof(nvprof)
    assert (outer.name, inner.name) == ("outer", "inner")
    assert (outer.cpu_time_total, inner.cpu_time_total) == (100.0, 20.0)
    assert inner.cpu_parent is outer
    assert (inner.cuda_time_total, outer.cuda_time_total) == (3.0, 7.0)
    assert outer.self_cuda_time_total == 4.0


def test_nvprof_events_are_an_event_list(nvprof):
    events = profiler.load_nvprof(str(nvprof))
    assert isinstance(events, EventList)
    assert listed(events.key_averages().table(sort_by="cuda_time_total")) == ["outer", "inner"]


def test_an_absent_trace_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="load_nvprof"):
        profiler.load_nvprof(tmp_path / "absent.prof")


def test_a_file_that_nvprof_did_not_write_is_reported(tmp_path):
    text = tmp_path / "text.prof"
    text.write_text("not a database" * 100)
    empty = tmp_path / "empty.prof"
    sqlite3.connect(empty).close()
    for path in (text, empty):
        with pytest.raises(ValueError, match="is no trace of nvprof"):
            profiler.load_nvprof(path)
