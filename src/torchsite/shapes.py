"""Every tensor shape of the package, named once.

The axis names are the vocabulary of the project: a picture of `channels × height × width` becomes
features of `depth × rows × cols`; each of the `classes` has one prototype of the features' shape.
"""

from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

Images = Float[Tensor, "batch channels height width"]
Pixels = UInt8[Tensor, "batch channels height width"]
Labels = Int64[Tensor, " batch"]
MultiHot = Bool[Tensor, "batch classes"]
Maps = Float[Tensor, "batch *channels rows cols"]
Points = Float[Tensor, "batch rows cols 2"]
Masks = Bool[Tensor, "batch rows cols"]
Features = Float[Tensor, "batch depth rows cols"]
Prototypes = Float[Tensor, "batch classes depth rows cols"]
Contributions = Float[Tensor, "batch classes depth rows cols"]
Logits = Float[Tensor, "batch classes"]
Heatmaps = Float[Tensor, "batch height width"]
ClassHeatmaps = Float[Tensor, "batch classes height width"]
Scores = Float[Tensor, " batch"]
Scalar = Float[Tensor, ""]

Size = tuple[int, int]
