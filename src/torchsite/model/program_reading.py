"""Networks trained elsewhere as programs: from a module, a torch.export file, or a TorchScript file.

| source | how it is read |
|---|---|
| a module | traced by `torch.export`; whose code runs is the caller's choice |
| a file of `torch.export.save` | its JSON and raw tensors are read here: `torch.export.load` would unpickle |
| a file of `torch.jit.save` | torch's reader builds tensors and a graph, which is translated and never run |

Files with pickled Python objects are refused. Operators that work in place become those that do not.
"""

import json
import math
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.errors import NotApplicableError, WeightsError
from torchsite.model.program_building import in_order, in_place_aside, with_weights
from torchsite.model.programs import DTYPES, GETITEM, INPUT, Answers, Step
from torchsite.model.torchscript import read_torchscript
from torchsite.modes import evaluating

ImageShape = tuple[int, int, int]
# The numbers of types in torch's files (torch/_export/serde/schema.py).
FILE_DTYPES = {4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64", 12: "bool", 13: "bfloat16"}
PLAIN = ("as_int", "as_float", "as_bool", "as_string", "as_ints", "as_floats", "as_bools", "as_strings")
IGNORED = ("as_device", "as_layout", "as_memory_format")


def read_program_file(path: Path) -> Answers:
    """A file of `torch.export.save` or `torch.jit.save` as a classifier; nothing is unpickled or run."""
    if not path.is_file():
        raise WeightsError(f"there is no file {path}: expected a network saved by torch.export or torch.jit")
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.endswith("models/model.json") for name in names):
                return _read_exported(archive)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, IndexError, StopIteration) as error:
        raise WeightsError(
            f"{path} cannot be read as a network ({error!r}): save it again with torch.export.save"
        ) from error
    if not any("/code/" in name for name in names):
        raise WeightsError(
            f"{path} holds no network that can be read without unpickling it: save the network with "
            "torch.export.save, or keep its state_dict and name the code that builds it (module:function)"
        )
    return read_torchscript(path)


def traced(classifier: nn.Module, image_shape: ImageShape) -> Answers:
    """A module as a program, by one pass of `torch.export` in evaluation mode; its weights are copied."""
    if isinstance(classifier, Answers):
        return classifier
    like = next(iter(classifier.parameters()), torch.zeros(()))
    example = torch.zeros(2, *image_shape, dtype=like.dtype, device=like.device)
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings(), torch.no_grad(), evaluating(classifier):
        warnings.simplefilter("ignore")
        try:
            found = torch.export.export(classifier, (example,), dynamic_shapes=({0: batch},), strict=False)
            found = found.run_decompositions()
        except Exception as error:  # code that depends on values fails in many ways
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise NotApplicableError(
                f"{type(classifier).__name__} cannot be traced on pictures of {image_shape} ({reason}): "
                "its code must not depend on values, and must take any number of pictures"
            ) from error
    return _from_exported(found)


def _from_exported(found: torch.export.ExportedProgram) -> Answers:
    """torch's exported program as ours."""
    signature = found.graph_signature
    sources = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    tensors = {**found.constants, **found.state_dict}
    (pictures,) = signature.user_inputs
    steps, outputs = [], []
    for node in found.graph.nodes:
        if node.op == "call_function":
            name = GETITEM if "getitem" in str(node.target) else str(node.target)
            stack = (node.meta.get("nn_module_stack") or {}).values()
            layers = tuple(path for path, _ in stack)
            arguments = in_order(node.target, node.args, node.kwargs) if node.kwargs else node.args
            steps.append(Step(node.name, name, _plain(tuple(arguments), str(pictures)), layers))
        elif node.op == "output":
            outputs = [node.args[0][0].name]
    weights = {name: tensors[target] for name, target in sources.items()}
    learning = set(signature.inputs_to_parameters)
    return with_weights(steps, weights, learning, outputs)


def _plain(value: Any, pictures: str) -> Any:
    """An argument of a step as JSON has it."""
    if isinstance(value, torch.fx.Node):
        return {"value": INPUT if value.name == pictures else value.name}
    if isinstance(value, list | tuple):
        return tuple(_plain(item, pictures) for item in value)
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return None  # devices, layouts, memory formats: those of the tensors at hand


def _read_exported(archive: zipfile.ZipFile) -> Answers:
    """The JSON and the raw tensors of a file of `torch.export.save`."""
    root = next(name for name in archive.namelist() if name.endswith("models/model.json"))
    root = root.removesuffix("models/model.json")
    content = json.loads(archive.read(f"{root}models/model.json"))["graph_module"]
    graph, signature = content["graph"], content["signature"]
    stored = _tensors(archive, root, "weights") | _tensors(archive, root, "constants")
    weights, learning, pictures = {}, set(), []
    for spec in signature["input_specs"]:
        (kind, given), *_ = spec.items()
        if kind == "user_input":
            pictures.append(given["arg"]["as_tensor"]["name"])
            continue
        name = given["arg"]["name"]
        weights[name] = stored[given.get(f"{kind}_name") or given["tensor_constant_name"]]
        learning |= {name} if kind == "parameter" else set()
    (pictures_name,) = pictures
    names = {pictures_name: INPUT}
    steps = [step for node in graph["nodes"] for step in _steps(node, names)]
    (logits,) = (spec["user_output"]["arg"]["as_tensor"]["name"] for spec in signature["output_specs"])
    classifier = with_weights(steps, weights, learning, [names.get(logits, logits)])
    sides = [side.get("as_int") for side in graph["tensor_values"][pictures_name]["sizes"][1:]]
    if len(sides) == 3 and all(isinstance(side, int) for side in sides):
        classifier.image_shape = (sides[0], sides[1], sides[2])
    return classifier


def _tensors(archive: zipfile.ZipFile, root: str, kind: str) -> dict[str, Tensor]:
    """The raw tensors of an archive by name; pickled ones are refused."""
    found = {}
    config = json.loads(archive.read(f"{root}data/{kind}/model_{kind}_config.json"))["config"]
    for name, entry in config.items():
        if entry["use_pickle"] or entry["tensor_meta"] is None:
            raise WeightsError(
                f"{name} is pickled in this file, and nothing is unpickled here: save plain tensors"
            )
        meta = entry["tensor_meta"]
        sizes, strides = ([int(n["as_int"]) for n in meta[key]] for key in ("sizes", "strides"))
        flat = torch.frombuffer(
            bytearray(archive.read(f"{root}data/{kind}/{entry['path_name']}")) or bytearray(1),
            dtype=DTYPES[FILE_DTYPES[meta["dtype"]]],
        )
        offset = int(meta["storage_offset"]["as_int"])
        last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if 0 in sizes or min([*sizes, *strides, offset, 0]) < 0 or last >= len(flat):
            raise WeightsError(f"{name}: its file is too short for {sizes}")
        found[name] = flat.as_strided(sizes, strides, offset).clone()
    return found


def _steps(node: Mapping[str, Any], names: dict[str, str]) -> list[Step]:
    """One node of the file, and one step more for each of several answers; `names` remembers stand-ins."""
    op = str(node["target"]).removeprefix("torch.ops.")
    if op in ("_operator.getitem", "operator.getitem"):
        op = GETITEM
    given = {entry["name"]: _file_argument(entry["arg"], names) for entry in node["inputs"]}
    stack = str(node.get("metadata", {}).get("nn_module_stack", ""))
    layers = tuple(part.split(",")[1] for part in stack.split(";") if part.count(",") >= 2)
    answers = [name for output in node["outputs"] for name in _file_names(output)]
    return in_place_aside(op, given, layers, answers, names)


def _file_argument(arg: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    (kind, value), *_ = arg.items()
    if kind == "as_none" or kind in IGNORED:
        return None
    if kind in PLAIN:
        return value
    if kind == "as_scalar_type":
        return {"dtype": FILE_DTYPES[value]}
    if kind in ("as_tensor", "as_sym_int", "as_sym_float"):
        name = value.get("name", value.get("as_name"))
        return value["as_int"] if name is None else {"value": names.get(name, name)}
    if kind in ("as_tensors", "as_optional_tensors", "as_sym_ints"):
        return tuple(_one_of_several(item, names) for item in value)
    raise WeightsError(f"an argument of kind {kind!r} is not known here")


def _one_of_several(item: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    if "name" in item:
        return _file_argument({"as_tensor": item}, names)
    if "as_name" in item or "as_int" in item:
        return _file_argument({"as_sym_int": item}, names)
    return _file_argument(item, names)


def _file_names(output: Mapping[str, Any]) -> list[str]:
    (kind, value), *_ = output.items()
    if kind == "as_tensors":
        return [item["name"] for item in value]
    return [value.get("name") or value["as_name"]]
