"""`flambeau.profiler`: which steps are measured, and what is handed over."""

from __future__ import annotations

import gzip
import json

import pytest

import flambeau as fb
from flambeau.profiler import ProfilerAction, ProfilerActivity, profile, schedule

pytest.importorskip("flambeau_numpy")


def counts(prof):
    return {event.key: event.count for event in prof.key_averages()}


def loop(prof, steps):
    for _ in range(steps):
        fb.ones(2).exp()
        prof.step()


def test_cycles_wait_warm_up_and_record():
    plan = schedule(wait=1, warmup=2, active=3, repeat=2, skip_first=1)
    names = [plan(step).name for step in range(14)]
    cycle = ["NONE", "WARMUP", "WARMUP", "RECORD", "RECORD", "RECORD_AND_SAVE"]
    assert names == ["NONE", *cycle, *cycle, "NONE"]
    shorter = schedule(wait=2, warmup=1, active=1, skip_first_wait=1)
    assert [shorter(step).name for step in range(5)] == [
        "WARMUP", "RECORD_AND_SAVE", "NONE", "NONE", "WARMUP",
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="active"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_measured_steps_are_handed_over_at_the_end_of_each_cycle():
    seen = []
    plan = schedule(wait=1, warmup=1, active=2)
    with profile(schedule=plan, on_trace_ready=lambda p: seen.append((p.step_num, counts(p)))) as p:
        loop(p, 9)
    assert [step for step, _ in seen] == [4, 8]
    assert all(found["exp"] == 2 for _, found in seen)
    assert all(f"ProfilerStep#{n}" in found for n, (_, found) in zip((2, 6), seen, strict=True))
    assert p.current_action is ProfilerAction.NONE


def test_a_block_without_a_schedule_is_one_measurement():
    seen = []
    with profile(on_trace_ready=seen.append, record_shapes=True) as p:
        with pytest.raises(RuntimeError, match="nothing was measured"):
            p.events()
        fb.ones(2, 3).exp()
    assert seen == [p] and counts(p)["exp"] == 1
    (event,) = (e for e in p.events() if e.name == "exp")
    assert event.input_shapes == [[2, 3]]
    assert "exp" in p.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total")


def test_events_of_several_cycles_can_be_kept():
    plan = schedule(wait=0, warmup=1, active=1)
    for acc, wanted in ((False, 1), (True, 2)):
        with profile(schedule=plan, acc_events=acc) as p:
            loop(p, 4)
        assert counts(p)["exp"] == wanted


def test_traces_are_written_for_tensorboard(tmp_path):
    for packed in (False, True):
        handle = fb.profiler.tensorboard_trace_handler(tmp_path / str(packed), "worker", packed)
        with profile(on_trace_ready=handle) as p:
            p.add_metadata("note", "text")
            p.add_metadata_json("numbers", "[1, 2]")
            fb.ones(2).exp()
        (file,) = (tmp_path / str(packed)).iterdir()
        assert file.name.startswith("worker.") and file.name.endswith(".gz") is packed
        with (gzip.open if packed else open)(file, "rt") as opened:
            told = json.load(opened)
        assert told["note"] == "text" and told["numbers"] == [1, 2]
        assert "exp" in {event["name"] for event in told["traceEvents"]}


def test_what_is_not_measured_is_told():
    with pytest.warns(UserWarning, match="profile_memory, with_flops not measured"):
        profile(profile_memory=True, with_flops=True)
    with pytest.raises(AssertionError, match="activities"):
        profile(activities=[])
    assert profile(use_cuda=True).activities >= {ProfilerActivity.CUDA}
    named = profile(custom_trace_id_callback=lambda: "seven")
    with named:
        pass
    assert named.get_trace_id() == "seven"
