#!/usr/bin/env python3
"""Writes chats.jsonl: questions about the weather and their answers, as messages.

    python3 make_chats.py [FILE [CHATS]]
"""
import json
import random
import sys

from make_corpus import PLACES, SKIES


def chats(count):
    draw = random.Random(2)
    for _ in range(count):
        place, sky = draw.choice(PLACES), draw.choice(SKIES)
        degrees = draw.randint(-5, 35)
        wear = "a coat" if degrees < 12 else "a shirt"
        yield [{"role": "user",
                "content": f"{place} is {sky}, at {degrees} degrees. "
                           "What shall I wear?"},
               {"role": "assistant",
                "content": f"Take {wear}" +
                           (" and an umbrella." if sky == "rainy" else ".")}]


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "chats.jsonl"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with open(name, "w", encoding="utf-8") as file:
        for messages in chats(count):
            file.write(json.dumps({"messages": messages}) + "\n")
    print(f"{count} chats in {name}")


if __name__ == "__main__":
    main()
