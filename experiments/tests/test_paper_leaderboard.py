"""The leaderboard: steps that are kept, words computed from scores, rows of one's own."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import section

from experiments import boards, leaderboard, registry
from experiments.leaderboard import BLACK_BOX, COLUMNS, ENTRIES, FIELDS, OWN, QUICK_FIELDS, find
from torchsite.errors import ConfigError
from torchsite.results import Result

YOUR_OWN = Path(__file__).parents[2] / "examples" / "leaderboard" / "your_own.py"
ROWS = ["cam", "b_cos", "site"]


def test_rows_fields_and_columns_are_what_the_page_says():
    assert [entry.name for entry in ENTRIES if OWN in entry.explainers] == [
        *("site", "site_paper", "cam", "bagnet", "parts", "b_cos")
    ]
    assert [field.name for field in FIELDS] == ["eurosat", "food10", "cifar10", "bam"]
    assert {field.features for field in FIELDS} == {"two_scales"}
    assert len(leaderboard.plan(Path("any")).seeds) == 3
    assert {column.better for column in COLUMNS} == {1, 0, -1}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_row_has_the_same_minutes_and_its_own_terms(entry):
    field = QUICK_FIELDS[1]
    config = field.config(terms=entry.terms, seed=1)
    assert (config.seconds, config.terms) == (60 * field.minutes, entry.terms)
    model = field.model(entry, field.load().train, seed=1)
    assert model.config.feature_extractor == field.features
    assert model.any_size, "mosaics are larger than pictures"


def test_wrong_names_are_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="b_cos"):
        find(["bcos"], ENTRIES)
    with pytest.raises(ConfigError, match="food10"):
        leaderboard.plan(Path("any"), data=["food"])


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A small board: three models, one seed, painted objects; one of them in a lane of its own before."""
    folder = tmp_path_factory.mktemp("board")
    lane = leaderboard.measure(folder, only=["cam"], data=["painted"], seeds=[0], quick=True)
    before = {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()}
    assert lane == len(before)
    result = leaderboard.run(folder, only=ROWS, data=["painted"], seeds=[0], quick=True)
    return folder, result, before


@pytest.mark.slow
def test_one_row_alone_is_kept_for_the_board(played):
    folder, result, before = played
    kept = {path for path in before if Result.load(path).values["cells"][0]["values"]}
    assert len(kept) >= 5
    assert all(path.stat().st_mtime_ns == before[path] for path in kept)
    assert Result.load(folder / "leaderboard.json").values == result.values
    rows = result.values["boards"]["painted"]["rows"]
    assert {row["entry"] for row in rows} == set(ROWS)
    expected = {column.title for column in COLUMNS} - {"grid pointing (¼)"}
    assert all(row["scores"][title][0] is not None for row in rows for title in expected)


def test_words_say_where_we_are_not_first(played):
    board = copy.deepcopy(played[1].values["boards"]["painted"])
    ours = next(row for row in board["rows"] if row["entry"] == "site")
    for row in board["rows"]:
        row["scores"] = {
            column.title: [column.better * (1.0 if row is ours else 0.5)]
            for column in COLUMNS
            if column.better
        }
    assert "not first" not in boards.first_words(board, COLUMNS)
    rival = next(row for row in board["rows"] if row["entry"] == "b_cos")
    rival["scores"]["above its floor"] = [2.0]
    assert "**It is not first** in these: above its floor: 1, B-cos head 2." in boards.first_words(
        board, COLUMNS
    )
    rival["kind"] = boards.IGNORANT
    assert "is ahead of all others in: above its floor." in boards.first_words(board, COLUMNS)


def test_the_section_and_the_figure_come_from_the_file(played):
    _, result, _ = played
    text = section(result)
    assert "| B-cos head |" in text
    assert "| training of one seed | minutes of one core | PMAC |" in text
    assert set(leaderboard.figures(result, {})) == {"leaderboard"}


@pytest.mark.slow
def test_a_file_of_twenty_lines_adds_a_model_and_a_method(tmp_path, monkeypatch):
    assert len(YOUR_OWN.read_text().splitlines()) <= 20
    found = registry.find_experiment("leaderboard")
    result = found.run(tmp_path, quick=True, add=YOUR_OWN, only=["mine"], data=["painted"], seeds=[0])
    (row,) = result.values["boards"]["painted"]["rows"]
    assert row["title"] == "CAM, sigmoid"
    assert row["scores"]["patch deletion"][0] is not None
    (black_box,) = find([BLACK_BOX], leaderboard.read_entries(YOUR_OWN))
    on = black_box.explainers["x ⊙ gradient"]
    pictures = QUICK_FIELDS[1].load()
    model = QUICK_FIELDS[1].model(replace(black_box), pictures.train, 0)
    assert on(model)(pictures.test.images[:2] / 255, pictures.test.labels[:2]).shape == (2, 16, 16)
    (tmp_path / "empty.py").write_text("ENTRIES = [1]")
    with pytest.raises(ConfigError, match="ENTRIES"):
        leaderboard.read_entries(tmp_path / "empty.py")
    with pytest.raises(ConfigError, match="--only"):
        registry.find_experiment("food10").run(tmp_path, only=["cam"])
