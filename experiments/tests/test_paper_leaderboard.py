"""The leaderboard: ranks by their laws, budgets that are met, steps that are kept, computed words."""

import copy
from pathlib import Path

import pytest
import torch
from hypothesis import given as given_values
from hypothesis import strategies as st
from made_up import section

from experiments import leaderboard, registry
from experiments.leaderboard import ablation, experiment, tables
from experiments.leaderboard.board import rank_rows
from experiments.leaderboard.columns import COLUMNS, RANKED
from experiments.leaderboard.entries import ENTRIES, POST_HOC, find
from experiments.leaderboard.fields import QUICK_FIELDS, within_budget
from experiments.leaderboard.ranks import agreement, kendalls_w, ranks
from torchsite.errors import ConfigError
from torchsite.results import Result
from torchsite.training.budget import training_budget

YOUR_OWN = Path(__file__).parents[2] / "examples" / "leaderboard" / "your_own.py"


def test_ranks_share_and_leave_out():
    assert ranks([0.3, None, 0.9, 0.3], 1) == [2.5, None, 1.0, 2.5]
    assert ranks([0.3, None, 0.9, 0.3], -1) == [1.5, None, 3.0, 1.5]


@given_values(m=st.integers(2, 6), n=st.integers(2, 9), seed=st.integers(0, 999))
def test_kendalls_w_is_one_where_all_agree_and_follows_the_ranks_correlations(m, n, seed):
    """W = (1 + (m - 1) r̄) / m, r̄ the mean of Spearman's correlations over pairs; without ties."""
    rng = torch.Generator().manual_seed(seed)
    table = torch.stack([1.0 + torch.randperm(n, generator=rng) for _ in range(m)]).double()
    assert kendalls_w(table[:1].repeat(m, 1)) == pytest.approx(1)
    pairs = torch.corrcoef(table)
    mean = (pairs.sum() - m) / (m * (m - 1))
    assert kendalls_w(table) == pytest.approx((1 + (m - 1) * float(mean)) / m, abs=1e-9)


def test_kendalls_w_of_ties_agrees_with_the_textbook():
    """Three judges of ten, with ties (Siegel & Castellan 1988, table 9.6 in form; by hand here)."""
    table = torch.tensor([[1, 2.5, 2.5, 4], [1.5, 1.5, 3, 4], [1, 2, 3, 4.0]])
    sums = torch.tensor([3.5, 6, 8.5, 12])
    spread = float((sums - 7.5).square().sum())
    assert kendalls_w(table) == pytest.approx(12 * spread / (9 * 60 - 3 * (6 + 6)))


def test_agreement_looks_at_rows_that_all_rank():
    found = agreement({"a": [1, 2, None, 3], "b": [1, 3, 2, 4], "c": [None] * 4})
    assert found == (pytest.approx(1), 3, 2)


def test_at_least_six_explain_themselves_and_six_are_post_hoc():
    assert sum(entry.explains_itself for entry in ENTRIES) >= 6
    assert len(POST_HOC) >= 6
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert {column.better for column in RANKED} == {1, -1}


@pytest.mark.parametrize("name", ["site", "cam_additive", "b_cos", "black_box"])
def test_every_training_costs_the_budget(name):
    field = QUICK_FIELDS["digits"]
    data, (entry,) = field.load().train, find([name], ENTRIES)
    config = field.config(terms=entry.terms)
    model = entry.build(data, config)
    for pmac in (5e-5, 1.3e-4):
        chosen, pictures = within_budget(model, config, data, pmac)
        assert training_budget(model, chosen, len(pictures)).pmac == pytest.approx(pmac, rel=0.25)
    assert len(pictures) > 128
    assert sorted(set(pictures.labels.tolist())) == list(range(10))


def test_a_wrong_entry_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="b_cos"):
        find(["bcos"], ENTRIES)


ROWS = ["cam", "b_cos", "parts", "site"]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A small board: four models and a method of one's own on the black box, one seed, painted objects."""
    folder = tmp_path_factory.mktemp("board")
    lane = leaderboard.measure(folder, only=["cam"], data=["painted"], seeds=[0], quick=True)
    before = {path: path.stat().st_mtime_ns for path in (folder / "steps" / "painted").iterdir()}
    assert lane == len(before)
    result = leaderboard.run(folder, only=ROWS, data=["painted"], seeds=[0], quick=True)
    return folder, result, before


@pytest.mark.slow
def test_one_row_alone_is_kept_for_the_board(played):
    folder, result, before = played
    kept = {
        path
        for path in before
        if path.stem.endswith("cost") or Result.load(path).values["cells"][0]["values"]
    }
    assert len(kept) >= 8
    assert all(path.stat().st_mtime_ns == before[path] for path in kept)
    assert Result.load(folder / "leaderboard.json").values == result.values
    rows = result.values["boards"]["painted"]["rows"]
    assert [row["entry"] for row in rows] == ROWS
    expected = {column.title for column in COLUMNS} - {"grid pointing (¼)"}
    assert all(expected <= set(row["scores"]) for row in rows)


def test_words_say_where_we_are_not_first(played):
    board = copy.deepcopy(played[1].values["boards"]["painted"])
    ours = next(row for row in board["rows"] if row["entry"] == "site")
    for row in board["rows"]:
        for column in RANKED:
            row["scores"][column.title] = [column.better * (1.0 if row is ours else 0.5)]
        row["scores"]["accuracy posed"] = [0.5]
    rank_rows(board["rows"])
    assert "is not first" not in tables.plain_words(board)
    rival = next(row for row in board["rows"] if row["entry"] == "b_cos")
    rival["scores"]["patch deletion"] = [2.0]
    rank_rows(board["rows"])
    words = tables.plain_words(board)
    assert "**It is not first** by these: patch deletion: 2 of 4, first is B-cos." in words
    assert tables.fooled_words(board).startswith("By no measure")
    assert tables.weak_words(board) == ""
    ours["scores"]["accuracy posed"] = [0.1]
    assert "accuracy posed: 0.100 against 0.500 of B-cos and " in tables.plain_words(board)
    for row in board["rows"]:
        row["scores"]["accuracy posed"] = [0.2]
    assert "hardly know the classes here" in tables.weak_words(board)
    rival["kind"], rival["title"] = "ignorant", "knows nothing: edges"
    assert (
        tables.fooled_words(board) == "A row that knows nothing beats all others by: patch deletion (edges)."
    )


def test_the_section_and_the_figures_come_from_the_file(played):
    _, result, _ = played
    text = section(result)
    assert "| B-cos |" in text
    assert "Kendall's W = " in text
    assert "In all: 4 trainings, " in text
    assert set(experiment.figures(result, {})) == {"leaderboard-painted", "leaderboard-scores"}


@pytest.mark.slow
def test_a_file_of_twenty_lines_adds_a_model_and_a_method(tmp_path):
    assert len(YOUR_OWN.read_text().splitlines()) <= 20
    board = registry.find_experiment("leaderboard")
    result = board.run(tmp_path, quick=True, add=YOUR_OWN, only=["mine"], data=["digits"], seeds=[0])
    (row,) = result.values["boards"]["digits"]["rows"]
    assert row["title"] == "small CNN"
    assert row["scores"]["patch deletion"][0] is not None
    entries = experiment.read_entries(YOUR_OWN)
    (black_box,) = find(["black_box"], entries)
    assert "x ⊙ gradient" in black_box.explainers
    field = QUICK_FIELDS["digits"]
    pictures = field.load()
    model = black_box.build(pictures.train, field.config())
    maps = black_box.explainers["x ⊙ gradient"](model)(
        pictures.test.images[:2] / 255, pictures.test.labels[:2]
    )
    assert maps.shape == (2, 28, 28)
    (tmp_path / "empty.py").write_text("ENTRIES = [1]")
    with pytest.raises(ConfigError, match="expected ENTRIES, a list of"):
        experiment.read_entries(tmp_path / "empty.py")
    with pytest.raises(ConfigError, match="leave --only away"):
        registry.find_experiment("many_classes").run(tmp_path, only=["cam"])


@pytest.mark.slow
def test_the_ablation_is_a_board_of_its_own(tmp_path):
    """Rows of SITE with and without its terms; mixed prototypes among them."""
    result = ablation.run(tmp_path, only=["lambda_0", "mixed"], quick=True)
    (board,) = result.values["boards"].values()
    assert [row["entry"] for row in board["rows"]] == ["lambda_0", "mixed"]
    text = section(result)
    assert "| λ = 0: no L_trans |" in text
    assert "one seed: differences of a few hundredths mean nothing" in text
    assert list(ablation.figures(result, {})) == ["ablation"]
    terms = {entry.name: {term.name for term in entry.terms} for entry in ablation.ROWS}
    assert terms["lambda_0"] == set()
    assert terms["additive"] - terms["direct"] == {"additive_evidence"}
