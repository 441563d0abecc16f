"""Networks trained elsewhere are read without their code, without unpickling, and without being run."""

import json
import zipfile

import pytest
import torch
from torch import nn

from foreign_networks import SHAPE, WAYS, network, save
from torchsite.errors import ConfigError, NotApplicableError, WeightsError
from torchsite.model import SITE
from torchsite.model.program_front import front_of, passages
from torchsite.model.program_reading import read_program_file, traced
from torchsite.model.programs import INPUT, Program, ProgramModule, Step, operator

SMALL = {"widths": (4, 4), "trunk": (4, 4)}


@pytest.fixture(scope="module")
def net():
    return network()


@pytest.fixture(scope="module", params=WAYS)
def file(request, net, tmp_path_factory):
    ending = "pt2" if request.param.startswith("exported") else "pt"
    return save(net, tmp_path_factory.mktemp("files") / f"network.{ending}", request.param)


def test_a_file_answers_what_the_network_does(net, file):
    images = torch.rand(3, *SHAPE)
    assert torch.allclose(read_program_file(file)(images), net(images), atol=1e-6)


def test_so_does_a_module_that_was_traced(net):
    program, images = traced(net, SHAPE), torch.rand(5, *SHAPE)
    assert torch.allclose(program(images), net(images), atol=1e-6)
    assert traced(program, SHAPE) is program


def test_the_front_has_the_last_maps_of_every_resolution(net, file):
    front = front_of(read_program_file(file), SHAPE)
    images = torch.rand(2, *SHAPE)
    program = read_program_file(file)
    body = ProgramModule(front)
    body.load_state_dict({name: program.body.state_dict()[name] for name in front.weights})
    fine, coarse = body(images)
    stem = net.stem(images)
    expected = (net.norm(net.conv(stem)) + stem).relu()
    assert torch.allclose(fine, expected, atol=1e-6)
    assert torch.allclose(coarse, net.last(expected).relu(), atol=1e-6)


def test_what_is_by_passed_is_no_passage():
    steps = (
        Step("a", "aten.relu.default", ({"value": INPUT},)),
        Step("b", "aten.relu.default", ({"value": "a"},)),
        Step("c", "aten.add.Tensor", ({"value": "a"}, {"value": "b"})),
    )
    shapes = dict.fromkeys("abc", (1, 2, 4, 4))
    assert passages(Program(steps, {}, ("c",)), shapes) == ["a", "c"]


def test_a_layer_can_be_named_where_the_file_says_its_name(net):
    program = traced(net, SHAPE)
    assert torch.allclose(
        _run(front_of(program, SHAPE, "stem"), program, images := torch.rand(2, *SHAPE)), net.stem(images)
    )
    with pytest.raises(NotApplicableError, match="did you mean 'stem"):
        front_of(program, SHAPE, "stam")
    with pytest.raises(NotApplicableError, match="no map"):
        front_of(program, SHAPE, "head")


def _run(front, program, images):
    body = ProgramModule(front)
    body.load_state_dict({name: program.body.state_dict()[name] for name in front.weights})
    return body(images)[0]


def test_a_twin_comes_back_without_the_code(file, tmp_path):
    twin = SITE.from_program(read_program_file(file), SHAPE, generator_options=SMALL).eval()
    images = torch.rand(2, *SHAPE)
    again = SITE.from_pretrained(twin.save_pretrained(tmp_path))
    assert torch.equal(again(images), twin(images))
    assert torch.allclose(twin.explain(images).heatmaps().sum((-2, -1)), twin(images), atol=1e-5)
    json.loads((tmp_path / "config.json").read_text())


def test_its_front_learns_unless_it_is_frozen(net):
    program = traced(net, SHAPE)
    for fine_tuning in (0.1, 0.0):
        twin = SITE.from_program(program, SHAPE, fine_tuning=fine_tuning, generator_options=SMALL).train()
        twin(torch.rand(2, *SHAPE)).square().sum().backward()
        body = twin.feature_extractor.get_submodule("body")
        assert all((p.grad is not None) == bool(fine_tuning) for p in body.parameters())


@pytest.mark.parametrize(
    "name", ["aten.from_file.default", "aten.save.default", "os.system", "aten.relu", "x"]
)
def test_operators_that_do_more_than_compute_are_refused(name):
    if name == "aten.relu":
        assert operator(name) is torch.ops.aten.relu.default
    else:
        with pytest.raises(NotApplicableError, match="is not one that"):
            operator(name)


def test_programs_are_read_strictly():
    step = {"name": "a", "op": "aten.relu.default", "args": [{"value": "input"}]}
    whole = {"steps": [step], "weights": {}, "outputs": ["a"]}
    assert Program.from_plain(whole).plain() == whole
    for wrong in (
        {},
        {"steps": 3, "weights": {}, "outputs": []},
        whole | {"outputs": ["b"]},
        whole | {"steps": [step | {"args": [{"value": "later"}]}]},
        whole | {"weights": {"no.name": {"shape": [1], "dtype": "float32", "learns": True}}},
    ):
        with pytest.raises(WeightsError, match="program"):
            Program.from_plain(wrong)


def test_pickles_are_refused(net, tmp_path):
    torch.save(net, tmp_path / "whole.pt")
    with pytest.raises(WeightsError, match="without unpickling"):
        read_program_file(tmp_path / "whole.pt")
    (tmp_path / "text.pt2").write_text("no network")
    with pytest.raises(WeightsError, match="cannot be read"):
        read_program_file(tmp_path / "text.pt2")
    with pytest.raises(WeightsError, match="no file"):
        read_program_file(tmp_path / "nothing.pt2")


def test_a_pickled_tensor_in_an_exported_file_is_refused(net, tmp_path):
    source, target = save(net, tmp_path / "a.pt2", "exported"), tmp_path / "b.pt2"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("weights_config.json"):
                content = content.replace(b'"use_pickle": false', b'"use_pickle": true', 1)
            new.writestr(name, content)
    with pytest.raises(WeightsError, match="nothing is unpickled"):
        read_program_file(target)


def test_code_that_depends_on_values_is_an_error():
    class Branching(nn.Module):
        def forward(self, images):
            return images.mean((-2, -1)) if float(images.sum()) > 0 else images.amax((-2, -1))

    with pytest.raises(NotApplicableError, match="cannot be traced"):
        traced(Branching(), SHAPE)


def test_a_front_without_a_program_is_an_error():
    with pytest.raises(ConfigError, match="torchsite convert"):
        SITE("program", "spatial", 2, image_shape=SHAPE)
