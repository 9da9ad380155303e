"""The recipes of peers_images, and torchvision's way to them over PIL, which runs in
an environment of its own with Pillow-SIMD, too: that takes Pillow's place.

    python3 image_recipes.py FOLDER    for each name of a recipe that is read, pictures
                                       per second of the processor
"""
import sys
import time

import PIL
import torch
import torchvision
from torchvision import transforms

BATCH = 64
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def recipes():
    end = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    return {"training": transforms.Compose(
                [transforms.RandomResizedCrop(224),
                 transforms.RandomHorizontalFlip(), *end]),
            "validation": transforms.Compose(
                [transforms.Resize(256), transforms.CenterCrop(224), *end])}


def rows_of(loader):
    return sum(len(batch[0]) if isinstance(batch, (list, tuple))
               else len(batch.torch()["image"]) for batch in loader)


def rate(run, count):
    start = time.process_time()
    assert run() == count
    return count / (time.process_time() - start)


def torchvision_pil(folder, name):
    loader = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(folder, recipes()[name]), BATCH)
    return lambda: rows_of(loader)


def main():
    torch.set_num_threads(1)
    folder = sys.argv[1]
    count = len(torchvision.datasets.ImageFolder(folder))
    print(PIL.__version__, flush=True)
    for line in sys.stdin:
        print(rate(torchvision_pil(folder, line.strip()), count), flush=True)


if __name__ == "__main__":
    main()
