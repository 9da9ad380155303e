"""The augmentations of penstock/transforms/augment and mixup in numpy, and the
cases that their tests compare with (augment.json, mixup.json)."""
import json
import math
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
BITS = (1 << 64) - 1
STEP = 0x9e3779b97f4a7c15
AUGMENT = 0x6175676d656e74


def mix64(x):
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 & BITS
    x ^= x >> 27
    x = x * 0x94d049bb133111eb & BITS
    return x ^ x >> 31


class Random:
    """penstock/base/random.h."""

    def __init__(self, seed, epoch, sample, operation):
        state = 0
        for place, part in enumerate((seed, epoch, sample, operation), 1):
            state = mix64(state ^ (part + place * STEP & BITS))
        self.state = state

    def next(self):
        self.state = self.state + STEP & BITS
        return mix64(self.state)

    def uniform(self):
        return (self.next() >> 11) * 2.0 ** -53

    def below(self, n):
        return self.next() * n >> 64

    def between(self, least, most):
        return least + (most - least) * self.uniform()

    def normal(self):
        radius = math.sqrt(-2 * math.log(1 - self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())


def mask(random, most, size):
    width = random.below(min(most, size) + 1)
    begin = random.below(size - width + 1)
    return slice(begin, begin + width)


def warped(random, x, most):
    times = x.shape[-1]
    if times <= 2 * most + 1:
        return x
    origin = most + random.below(times - 2 * most)
    to = origin - most + random.below(2 * most + 1)
    t = np.arange(times)
    before = origin / to if to > 0 else 0.0
    after = (times - origin) / (times - to)
    at = np.where(t < to, t * before, origin + (t - to) * after)
    left = at.astype(int)
    right = np.minimum(left + 1, times - 1)
    part = (at - left).astype("f4")
    return x[..., left] + part * (x[..., right] - x[..., left])


def spec_augment(random, x, time_masks=0, time_width=0, frequency_masks=0,
                 frequency_width=0, time_warp=0, value=0.0):
    if time_warp:
        x = warped(random, x, time_warp)
    for _ in range(time_masks):
        x[..., mask(random, time_width, x.shape[-1])] = value
    for _ in range(frequency_masks):
        x[..., mask(random, frequency_width, x.shape[-2]), :] = value
    return x


def noise(random, x, snr=(10, 40), probability=1.0):
    drawn = random.uniform() < probability
    ratio = random.between(*snr)
    if not drawn:
        return x
    deviation = math.sqrt(float((x.astype("f8") ** 2).mean())
                          / 10.0 ** (ratio / 10))
    normals = np.array([random.normal() for _ in range(x.size)])
    return (x + deviation * normals.reshape(x.shape)).astype("f4")


def gain(random, x, db=(-6, 6), probability=1.0):
    drawn = random.uniform() < probability
    factor = np.float32(10.0 ** (random.between(*db) / 20))
    return x * factor if drawn else x


def time_shift(random, x, most=0.1, fill="wrap", probability=1.0):
    drawn = random.uniform() < probability
    reach = int(most * x.shape[-1])
    by = random.below(2 * reach + 1) - reach
    if not drawn or by == 0:
        return x
    x = np.roll(x, by, axis=-1)
    if fill == "zeros":
        x[..., slice(None, by) if by > 0 else slice(by, None)] = 0
    return x


def augmented(augment, x, seed, epoch, sample):
    x = x.copy()
    for place, entry in enumerate(augment):
        (name, settings), = entry.items()
        operation = mix64(AUGMENT + place)
        x = globals()[name](Random(seed, epoch, sample, operation), x,
                            **settings)
    return x


def of_batch(seed, epoch, step, draw):
    """Numbers of the first operation of a loader on a batch."""
    return Random(seed, epoch, step, mix64(mix64(draw & BITS)))


def log_gamma(random, alpha):
    d = alpha + 1 - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        x = random.normal()
        root = 1 + c * x
        uniform = 1 - random.uniform()
        if root <= 0:
            continue
        v = root ** 3
        if math.log(uniform) < 0.5 * x * x + d - d * v + d * math.log(v):
            return math.log(d * v) + math.log(1 - random.uniform()) / alpha


def mixup(x, labels, alpha, seed, epoch, step, rank):
    """The mixed rows, the labels of the partners, and lambda."""
    order = list(range(len(x)))
    places = of_batch(seed, epoch, step, mix64(0x706172746e65) + 1 + rank)
    for left in range(len(order), 1, -1):
        other = places.below(left)
        order[left - 1], order[other] = order[other], order[left - 1]
    partner = np.empty(len(x), int)
    partner[order] = np.roll(order, -1)
    draws = of_batch(seed, epoch, step, 0x6c616d6264)
    a, b = log_gamma(draws, alpha), log_gamma(draws, alpha)
    share = np.float32(1 / (1 + math.exp(b - a)))
    return share * x + (1 - share) * x[partner], labels[partner], share


def mixed_cases():
    for rows, alpha in ((8, 1.0), (5, 0.2), (2, 8.0), (1, 1.0)):
        for seed, epoch, step, rank in ((3, 0, 0, 0), (3, 0, 1, 0),
                                        (3, 2, 1, 0), (9, 1, 70, 3)):
            x = np.arange(2 * rows, dtype="f4").reshape(rows, 2) ** 2
            mixed, labels, share = mixup(x, np.arange(rows), alpha, seed,
                                         epoch, step, rank)
            yield {"rows": rows, "alpha": alpha, "seed": seed, "epoch": epoch,
                   "step": step, "rank": rank,
                   "x": [float(v) for v in mixed.ravel()],
                   "labels": [int(label) for label in labels],
                   "lambda": float(share)}


def main():
    masks = {"time_masks": 2, "time_width": 3, "frequency_masks": 1,
             "frequency_width": 2}
    cases = []
    for augment, shape in (
            ([{"spec_augment": masks}], [4, 8]),
            ([{"spec_augment": {**masks, "time_warp": 2, "value": -1.5}}],
             [2, 3, 9]),
            ([{"spec_augment": {"time_masks": 1, "time_width": 20}}], [12]),
            ([{"spec_augment": {"time_masks": 2, "time_width": 9}}], [40]),
            ([{"spec_augment": {"time_masks": 2, "time_width": 17,
                                "value": 2.5}}], [3, 24]),
            ([{"noise": {"snr": [0, 30]}}, {"gain": {"db": [-20, 20]}}], [20]),
            ([{"time_shift": {"most": 0.5}}], [2, 8]),
            ([{"time_shift": {"most": 0.4, "fill": "zeros"}},
              {"gain": {"db": [-3, 3], "probability": 0.5}}], [10])):
        for seed, epoch, sample in ((3, 0, 0), (3, 0, 1), (3, 2, 0), (9, 1, 77)):
            x = ((np.arange(math.prod(shape)) * 37) % 101 - 50).astype("f4")
            made = augmented(augment, x.reshape(shape), seed, epoch, sample)
            cases.append({"augment": augment, "shape": shape, "seed": seed,
                          "epoch": epoch, "sample": sample,
                          "values": [float(v) for v in made.ravel()]})
    for name, made in (("augment", cases), ("mixup", mixed_cases())):
        (HERE / f"{name}.json").write_text(
            "[\n" + ",\n".join(map(json.dumps, made)) + "\n]\n")


if __name__ == "__main__":
    main()
