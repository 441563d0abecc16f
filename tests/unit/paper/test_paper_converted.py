"""The experiment on conversion: a plain network, the command, and the table of both."""

import torch
from made_up import section

from torchsite.paper import converted
from torchsite.paper.plain_network import SmallResNet, normalised, train_plainly


def test_the_command_converts_a_plain_network_and_the_table_names_both(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    result = converted.run(tmp_path / "convert", quick=True)
    values = result.values
    assert values["comparison"]["n"] >= 20
    assert {"classifier", "twin", "agreement"} <= set(values["comparison"])
    assert values["scores"]["patch_deletion"]["floor"]["value"] is not None
    assert values["minutes"]["processor"] > 0
    again = converted.run(tmp_path / "convert", quick=True)
    assert again.values == values
    text = section(result)
    assert "torchsite convert network.pt2 shapes --limit 60" in text
    assert "≥ 0.6" in text


def test_the_plain_network_learns():
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(256) % 2
    pixels = torch.randint(0, 60, (256, 3, 12, 12), generator=rng, dtype=torch.uint8)
    pixels[:, 0] += (labels * 150).to(torch.uint8)[:, None, None]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = train_plainly(SmallResNet(2, widths=(4, 8)), pixels, labels, epochs=4, rate=0.05)
    with torch.no_grad():
        assert (net(normalised(pixels)).argmax(1) == labels).float().mean() > 0.9
