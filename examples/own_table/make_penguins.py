#!/usr/bin/env python3
"""Writes penguins.csv: 344 birds that are drawn at random, as a user's table
may look: texts, numbers, dates, cells that are missing, and no key.

    python3 make_penguins.py [FILE]
"""
import csv
import datetime
import random
import sys

# Means of the bill in mm and of the body in g, and the islands of each species.
SPECIES = {"Adelie": (39.5, 3800, ["Biscoe", "Dream", "Torgersen"], 152),
           "Chinstrap": (47.5, 3900, ["Dream", "Biscoe"], 68),
           "Gentoo": (46.5, 4900, ["Biscoe", "Torgersen"], 124)}


def penguins():
    draw = random.Random(1)
    birds = [species for species, (*_, count) in SPECIES.items()
             for _ in range(count)]
    draw.shuffle(birds)
    day = datetime.date(2007, 11, 11)
    for species in birds:
        bill, mass, islands, _ = SPECIES[species]
        sex = draw.choice(["female", "male"])
        heavier = 300 if sex == "male" else -300
        yield {"species": species, "island": draw.choice(islands),
               "bill_mm": round(draw.gauss(bill, 3), 1),
               "body_g": "" if draw.random() < 0.05 else
               round(draw.gauss(mass + heavier, 350), -1),
               "sex": "" if draw.random() < 0.03 else sex,
               "seen": day + datetime.timedelta(days=draw.randrange(700))}


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "penguins.csv"
    birds = list(penguins())
    with open(name, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, birds[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(birds)
    print(f"{len(birds)} birds in {name}")


if __name__ == "__main__":
    main()
