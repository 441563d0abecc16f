"""Object motion: when only the object moves, does the map of the object model move with it?

Objects pasted on scenes (BAM); f_obj names the object, f_scene the scene. Three pictures of the same parts:

    x    the object on the scene,      x_o  the object turned and moved by T_o over the same scene,
                                       x_s  the scene posed by T_s (black corners) behind the same object

    object_follows = T_o(I_obj(x)) and I_obj(x_o): right      object_stays  = I_obj(x) and I_obj(x_o)
    object_holds   = I_obj(x) and I_obj(x_s): right           frame_follows = T_s(I_obj(x)) and I_obj(x_s)
    scene_stays    = I_scene(x) and I_scene(x_o): right       scene_follows = T_o(I_scene(x)) and I_scene(x_o)

On the right stand the rivals: a map that stays where it was, and one that follows the frame. Each is a self-
consistency: raw, the mismatched floor (the map of another picture, same motion), calibrated, centred. A
template stays and follows the frame, and scores calibrated 0 in what is right. Counted are pictures that the
model in question names correctly in both conditions. Scenes are compared where both pictures show them. The
object turns about its own middle within the range of the poses, and moves to any place where all of it is
seen.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from experiments.bam.metric import OfBoth, named
from torchsite.metrics.explainer import Explainer
from torchsite.metrics.measure import Batch, Statistics, Sums
from torchsite.metrics.self_consistency import Consistency, consistencies, consistency_scores
from torchsite.randomness import make_rng, uniform
from torchsite.shapes import Images, Labels, Masks
from torchsite.transforms import AffineTransform, Transform
from torchsite.transforms.base import Frame


class ObjectMotionResult(NamedTuple):
    """What is right and its rival: the object moves (object model), the scene moves, and the scene model."""

    object_follows: Consistency
    object_stays: Consistency
    object_holds: Consistency
    frame_follows: Consistency
    scene_stays: Consistency
    scene_follows: Consistency


def object_motions(
    regions: Masks, indices: Int64[Tensor, " batch"], max_rotation: float, seed: int
) -> AffineTransform:
    """For each object a turn about its own middle and a new place where all of it is seen."""
    frame = Frame.of((regions.shape[-2], regions.shape[-1]), torch.device("cpu"))
    moves = []
    for region, index in zip(regions.cpu(), indices.tolist(), strict=True):
        rng = make_rng(seed, "object motion", index)
        rows, cols = region.nonzero(as_tuple=True)
        x, y = (frame.x[cols], frame.y[rows]) if len(rows) else (frame.x[:1] * 0, frame.y[:1] * 0)
        middle = [(line.min() + line.max()) / 2 for line in (x, y)]
        radius = float(torch.hypot(x - middle[0], y - middle[1]).max())
        rooms = [max(float(side) - radius, 0.0) for side in frame.half_sides]
        right, down = (float(uniform(-room, room, 1, rng)) for room in rooms)
        turn = AffineTransform.rotation(uniform(-max_rotation, max_rotation, 1, rng))
        back = AffineTransform.shift(-middle[0] / 2, -middle[1] / 2)
        there = AffineTransform.shift(right / 2, down / 2)
        moves.append(there.matrix @ turn.matrix @ back.matrix)
    return AffineTransform(torch.cat(moves))


def composed(objects: Images, opacity: Images, scenes: Images) -> Images:
    """Objects, already multiplied by their opacity, over scenes."""
    return objects + (1 - opacity) * scenes


class ObjectMotion(OfBoth):
    """Whether maps follow the object that moves, and nothing else: three pairs, before and after a motion."""

    headline = (
        "object_follows.calibrated",
        "object_stays.raw",
        "frame_follows.raw",
        "scene_stays.calibrated",
    )
    shape, asks = (6, 5), 6

    def _statistics(self, batch: Batch, regions: Masks, bare: Images, perturbed: Images | None) -> Statistics:
        """(batch, 6, 5): the scores of what is right and of its rivals."""
        del perturbed
        device, family, seed = batch.images.device, self.poses.family, self.poses.seed
        move = object_motions(regions, batch.indices, family.max_rotation, seed).to(device)
        pose = self.poses.of(batch.indices, 0).to(device)
        still = AffineTransform.identity(len(batch)).to(device)
        opacity = regions[:, None].to(batch.images)
        cut = batch.images * opacity
        before = composed(cut, opacity, bare)
        moved, framed = composed(move(cut), move(opacity), bare), composed(cut, opacity, pose(bare))
        bare_seen = ~regions.to(device) & (move(opacity)[:, 0] == 0)
        of_object, of_scene = self._borrowed
        rows = [
            *_carried(of_object, batch.labels, before, moved, (move, still)),
            *_carried(of_object, batch.labels, before, framed, (still, pose)),
            *_carried(of_scene, batch.classes, before, moved, (still, move), bare_seen),
        ]
        return torch.stack(rows, dim=1)

    def _compute(self, sums: Sums) -> ObjectMotionResult:
        return ObjectMotionResult(*consistencies(sums))


def _carried(
    explainer: Explainer,
    classes: Labels,
    before: Images,
    after: Images,
    motions: tuple[Transform, Transform],
    seen: Masks | None = None,
) -> list[Statistics]:
    """The scores of each supposed motion, of the pictures that are named correctly before and after."""
    right = named(explainer, before, classes) & named(explainer, after, classes)
    first, second = explainer(before, classes), explainer(after, classes)
    counted, offset = right[:, None].double().cpu(), int(len(before) > 1)
    return [consistency_scores(first, second, motion, offset, seen).cpu() * counted for motion in motions]
