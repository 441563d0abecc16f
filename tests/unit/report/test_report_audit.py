"""The page of an audit shows every group, and says what the audit says."""

import json
from html import unescape

import pytest

import torchsite as ts
from tagged import Colours, coloured, true_maps, upper_left
from torchsite.report import write_report
from torchsite.report.audit import audit_figures, audit_tables, crops, write_audit


@pytest.fixture(scope="module")
def audits():
    data, _ = coloured()
    return [ts.audit(Colours(), data, explain=maps) for maps in (true_maps, upper_left)]


def test_the_page_has_verdicts_figures_tables_and_all_numbers(audits, tmp_path):
    text = write_audit(audits, tmp_path / "audit.html").read_text()
    assert all(verdict in unescape(text) for verdict in audits[0].verdicts)
    assert text.count("<svg") == 3
    assert "upper left" in text
    numbers = json.loads(text.partition('id="result">')[2].partition("</script>")[0])
    assert numbers["values"] == audits[0].result.values


def test_one_audit_has_no_table_of_methods(audits, tmp_path):
    assert "With other maps" not in write_audit(audits[0], tmp_path / "audit.html").read_text()


def test_tables_have_a_row_for_each_group_the_proved_first(audits):
    tables = audit_tables(audits[0])
    assert {len(table.rows) for table in tables.values()} == {len(audits[0].groups)}
    assert tables["table_of_groups"].rows[0][-1] == "yes"
    assert set(audit_figures(audits[0])) == {"groups", "turns", "falls"}


def test_pieces_of_the_tag_are_the_tag(audits):
    (group,) = [one for one in audits[0].found if one["kind"] == "content"]
    for piece in crops(audits[0], group):
        assert piece.shape == (3, 4, 4)
        assert (piece[0] == 1).all()
        assert (piece[1] == 0).all()


def test_a_report_has_the_sentences_and_strongest_groups_of_an_audit(audits, case, shown, tmp_path):
    pages = [
        write_report(case[2], shown, tmp_path / f"{i}.html", audit=audit).read_text()
        for i, audit in enumerate((None, audits[0]))
    ]
    assert pages[1].count("<svg") == pages[0].count("<svg") + 1
    assert all(said in unescape(pages[1]) and said not in unescape(pages[0]) for said in audits[0].verdicts)
