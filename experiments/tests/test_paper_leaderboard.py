"""The leaderboard: steps that are kept, words computed from scores, rows of one's own."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_up import section

from experiments import boards, leaderboard, registry
from experiments.boards import OWN, Line
from experiments.entries import BLACK_BOX, ENTRIES, read_entries
from experiments.fields import FIELDS, QUICK_FIELDS, chosen
from experiments.leaderboard import COLUMNS, STUDY
from experiments.study import Run
from torchsite.errors import ConfigError
from torchsite.metrics import self_consistency
from torchsite.randomness import make_rng
from torchsite.results import Result

YOUR_OWN = Path(__file__).parents[2] / "examples" / "leaderboard" / "your_own.py"
ROWS = ["cam", "b_cos", "site"]


def test_rows_fields_and_columns_are_what_the_page_says():
    assert [entry.name for entry in ENTRIES if OWN in entry.explainers] == [
        *("site", "site_paper", "cam", "bagnet", "parts", "b_cos")
    ]
    assert [field.name for field in FIELDS] == ["eurosat", "food10", "cifar10", "bam"]
    assert {field.features for field in FIELDS} == {"two_scales"}
    assert len(leaderboard.OnBoard.of(Run("", Path("any"), ())).seeds) == 3
    assert [column.title for column in COLUMNS if column.better < 0] == ["ms a map"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_row_has_the_same_minutes_and_its_own_terms(entry):
    field = QUICK_FIELDS[1]
    config = field.config(terms=entry.terms, seed=1)
    assert (config.seconds, config.terms) == (60 * field.minutes, entry.terms)
    model = field.model(entry.build, field.load().train, seed=1)
    assert model.config.feature_extractor == field.features
    assert model.any_size, "mosaics are larger than pictures"


def test_wrong_names_are_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="b_cos"):
        chosen(["bcos"], ENTRIES)
    with pytest.raises(ConfigError, match="food10"):
        chosen(["food"], FIELDS)


def test_a_pointwise_map_is_equivariant_under_quarter_turns_and_a_fixed_one_is_not():
    images = torch.rand(6, 1, 8, 8, generator=make_rng(0))
    slope = torch.arange(64.0).reshape(8, 8)
    options = {"family": leaderboard.QuarterTurns(), "rng": make_rng(1), "n_resamples": 5}
    classes = torch.zeros(6, dtype=torch.int64)
    pointwise, fixed = (
        self_consistency(explain, images, classes, **options).raw.value
        for explain in (lambda x, c: x[:, 0] ** 2, lambda x, c: slope.expand(len(x), 8, 8))
    )
    assert pointwise == pytest.approx(1, abs=1e-6)
    assert fixed < 0.95


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A small board: three models, one seed, painted objects; one of them in a lane of its own before."""
    folder = tmp_path_factory.mktemp("board")
    lane = STUDY.measure("", folder, only=["cam"], data=["painted"], seeds=[0], quick=True)
    before = {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()}
    assert lane == len(before)
    result = STUDY.run("", folder, only=ROWS, data=["painted"], seeds=[0], quick=True)
    return folder, result, before


@pytest.mark.slow
def test_one_row_alone_is_kept_for_the_board(played):
    folder, result, before = played
    kept = {path for path in before if Result.load(path).values["cells"][0]["values"]}
    assert len(kept) >= 5
    assert all(path.stat().st_mtime_ns == before[path] for path in kept)
    assert Result.load(folder / "leaderboard.json").values == result.values
    (board,) = leaderboard.boards(result).values()
    assert {line.model for line in board} == set(ROWS)
    expected = {column.title for column in COLUMNS} - {"grid pointing (¼)"}
    assert all(line.known(title) for line in board for title in expected)


def test_words_say_where_we_are_not_first():
    def line(model, method, value):
        scores = {column.title: [column.better * value] for column in COLUMNS}
        return Line(model, {"site": "SITE", "b_cos": "B-cos head"}[model], method, scores)

    board = [line("site", OWN, 1.0), line("b_cos", OWN, 0.5)]
    assert "not first" not in boards.first_words(board, COLUMNS)
    board[1].scores["grid pointing (¼)"][0] = 2.0
    assert "**It is not first** in these: grid pointing (¼): 1, B-cos head 2." in boards.first_words(
        board, COLUMNS
    )
    board[1] = replace(board[1], method="ignorant_edges")
    assert "is ahead of all others in: grid pointing (¼)." in boards.first_words(board, COLUMNS)


def test_agreement_is_the_rank_correlation_of_the_columns():
    a, b = COLUMNS[:2]
    rising = [Line("m", "m", OWN, {a.title: [i], b.title: [i**3]}) for i in range(4)]
    falling = [Line("m", "m", OWN, {a.title: [i], b.title: [-i]}) for i in range(4)]
    assert "| 1.00 |" in boards.agreement([rising], [a, b])
    assert "| 0.00 |" in boards.agreement([rising, falling], [a, b])


def test_the_section_and_the_figure_come_from_the_file(played):
    _, result, _ = played
    text = section(result)
    assert "| B-cos head |" in text
    assert "| training of one seed | minutes of one core | PMAC |" in text
    assert "hours of one core." in text
    assert set(STUDY.figures(result, {})) == {"leaderboard"}


@pytest.mark.slow
def test_a_file_of_twenty_lines_adds_a_model_and_a_method(tmp_path, monkeypatch):
    assert len(YOUR_OWN.read_text().splitlines()) <= 20
    found = registry.find_experiment("leaderboard")
    result = found.run(tmp_path, quick=True, add=YOUR_OWN, only=["mine"], data=["painted"], seeds=[0])
    ((line,),) = leaderboard.boards(result).values()
    assert line.title == "CAM, sigmoid"
    assert line.known("patch deletion above its floor")
    (black_box,) = chosen([BLACK_BOX], read_entries(YOUR_OWN))
    on = black_box.explainers["x ⊙ gradient"]
    pictures = QUICK_FIELDS[1].load()
    model = QUICK_FIELDS[1].model(black_box.build, pictures.train, 0)
    assert on(model)(pictures.test.images[:2] / 255, pictures.test.labels[:2]).shape == (2, 16, 16)
    (tmp_path / "empty.py").write_text("ENTRIES = [1]")
    with pytest.raises(ConfigError, match="ENTRIES"):
        read_entries(tmp_path / "empty.py")
    with pytest.raises(ConfigError, match="--only"):
        registry.find_experiment("food10").run(tmp_path, only=["cam"])
