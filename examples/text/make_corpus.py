#!/usr/bin/env python3
"""Writes corpus.jsonl: short texts about weather that are drawn at random. The
tokens of tokenizer.json are their UTF-8 bytes, and 256 for the end of a text.

    python3 make_corpus.py [FILE [DOCUMENTS]]
"""
import json
import random
import sys

PLACES = ["Bergen", "Lima", "Nairobi", "Osaka", "Perth", "Reykjavík"]
SKIES = ["clear", "cloudy", "foggy", "rainy", "snowy", "windy"]


def texts(count):
    draw = random.Random(1)
    for _ in range(count):
        place = draw.choice(PLACES)
        days = max(1, int(draw.lognormvariate(1.5, 0.8)))
        sky = draw.choice(SKIES)
        sentences = [f"In {place} the week began {sky}."]
        for day in range(2, days + 1):
            if draw.random() < 0.4:
                sky = draw.choice(SKIES)
            sentences.append(f"Day {day} was {sky}, "
                             f"at {draw.randint(-5, 35)} degrees.")
        yield " ".join(sentences)


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "corpus.jsonl"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    with open(name, "w", encoding="utf-8") as file:
        for text in texts(count):
            file.write(json.dumps({"text": text}) + "\n")
    print(f"{count} documents in {name}")


if __name__ == "__main__":
    main()
