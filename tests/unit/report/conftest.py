"""One examination of each kind of model serves all tests of reports."""

import pytest
from report_makers import black_box, blobs, examined, site

from torchsite.evaluation import illustrate
from torchsite.report import report_figures


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "metrics.csv"
    path.write_text(
        "epoch,loss,step,validation accuracy\n0,3.5,19,\n0,2.5,39,\n0,,39,0.5\n1,1.5,59,\n1,,79,0.75\n"
    )
    return path


@pytest.fixture(
    scope="session", params=[site, pytest.param(black_box, marks=pytest.mark.slow)], ids=["site", "black_box"]
)
def case(request, log):
    """A model, its data and its examination."""
    model, data = request.param(), blobs()
    return model, data, examined(model, data, training=data, log=log)


@pytest.fixture(scope="session")
def shown(case):
    """The pictures and maps of its report."""
    return illustrate(*case)


@pytest.fixture(scope="session")
def figures(case, shown):
    return report_figures(case[2], shown)
