"""Train on a folder with one sub-folder per class, and write a report about the model."""

import torchsite as ts
from torchsite.evaluation import examine, illustrate
from torchsite.report import write_report

train, test = (ts.load_dataset("photos", split, size=64) for split in ("train", "test"))
model = ts.SITE("pyramid", n_classes=len(train.classes), classes=train.classes, image_shape=(3, 64, 64))
run = ts.fit(model, train, ts.TrainingConfig(epochs=30, batch_size=32), validation=test, folder="runs/photos")

result = examine(model, test, training=train, log=run.folder / "logs" / "metrics.csv")
print("report:", write_report(result, illustrate(model, test, result), "report.html"))
