"""The pages on reliability and scaling say what the result files say, and nothing that was not run."""

from torchsite.paper.reliability import reliability_page
from torchsite.paper.scaling import scaling_page
from torchsite.results import Result


def save(folder, name, values, **config):
    Result(name, values, config, 0, 1.0).save(folder / f"{name}.json")


def fault(what, tried, runs, survived):
    return {"what": what, "tried": tried, "runs": runs, "survived": survived, "notes": [], "seconds": 1}


def test_without_a_campaign_there_is_no_page(tmp_path):
    assert reliability_page(tmp_path) is None


def test_every_fault_and_every_reader_has_its_line(tmp_path):
    faults = {"kill_9": fault("kill -9 anywhere.", 21, 7, 7), "flipped": fault("A bit flipped.", 20, 20, 19)}
    save(tmp_path, "faults", faults, steps=30)
    page = reliability_page(tmp_path)
    assert "| kill -9 anywhere | 21 | 7 of 7 runs |" in page
    assert "| A bit flipped | 20 | 19 of 20 runs |" in page
    assert "Bad files" not in page
    target = {"inputs": 12345, "seconds": 60.2, "findings": 0, "largest memory, MB": None}
    limits = {"hang, s": 20, "memory, MB": 3000}
    save(tmp_path, "fuzz", {"targets": {"picture": target}, "findings": 0}, **limits)
    assert "| picture | 12,345 | 60 | – | 0 |" in reliability_page(tmp_path)


def test_the_tables_of_scaling_come_with_their_results(tmp_path):
    bare = scaling_page(tmp_path)
    assert "torchrun" in bare
    assert "One step, measured" not in bare
    save(
        tmp_path, "scaling", {"steps": {"reference": 100.0, "bfloat16": 50.0}, "ranks": {"1 processes": 4.0}}
    )
    seen = [{"step": i, "own, MB": 400.0, "mapped, MB": 10.0 * i} for i in range(10, 70, 10)]
    large = {
        "pictures": 200_000,
        "cache, MB": 614.4,
        "decoding, s": 60,
        "limit, MB": 500,
        "during training": seen,
    }
    save(tmp_path, "large_set", large)
    quality = {"accuracy, int8": 0.99, "accuracy, float32": 0.992, "int8 agrees with float32": 0.998}
    export = {
        "milliseconds": {"1": {"PyTorch": 2.0}, "32": {"PyTorch": 40.0}},
        "largest difference from PyTorch": 3e-5,
        "bytes": {"float32": 100, "int8": 29},
        "quality": quality,
    }
    save(tmp_path, "export", export, model="mnist", threads="1", data="mnist_sample")
    page = scaling_page(tmp_path)
    for line in (
        "| bfloat16 | 50 | 0.50 |",
        "| 1 processes | 4.0 |",
        "| 60 | 400 | 600 |",
        "with a hard limit of 500 MB",
        "| PyTorch | 2.00 | 40.00 |",
        "the same answer for 99.8%",
    ):
        assert line in page, line


def test_costs_of_training_say_what_was_missed(tmp_path):
    row = {
        "name": "explanation / black box",
        "times": "1 ms, 2 ms",
        "ratio": 1.504,
        "target": "≤ 1.3",
        "met": False,
    }
    plain = {"name": "step, 101 classes / 10", "times": "3 ms", "ratio": 3.0, "target": "", "met": None}
    save(tmp_path, "training_costs", {"rows": [row, plain]}, batch_size=64, threads=2)
    page = scaling_page(tmp_path)
    assert "| explanation / black box | 1 ms, 2 ms | 1.50 | ≤ 1.3 | missed |" in page
    assert "| step, 101 classes / 10 | 3 ms | 3.00 |  |  |" in page
