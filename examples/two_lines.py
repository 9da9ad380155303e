#!/usr/bin/env python3
"""A plain PyTorch loop over rows in SQLite. Two lines differ from one that is
fed by torch's DataLoader:

    -from torch.utils.data import DataLoader
    +import penstock
    ...
    -loader = DataLoader(MyDataset("train.sqlite"), batch_size=256, shuffle=True)
    +loader = penstock.open("job.json", format="torch")

Run it on the demonstration data:

    penstock demo positions --rows 4030 --seed 1 --to sqlite:positions.sqlite
    python examples/two_lines.py examples/positions/job.json positions.sqlite
"""
import sys

import torch

import penstock

job, base = sys.argv[1:]
loader = penstock.open(job, source__path=base, format="torch")

device = "cuda" if torch.cuda.is_available() else "cpu"  # as the loader's
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(60, 64),
                            torch.nn.ReLU(), torch.nn.Linear(64, 2)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(3):
    total = 0.0
    for receivers, target in loader:
        loss = torch.nn.functional.mse_loss(model(receivers), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}")
print(loader.explain())
print("to go on from here:", loader.state_dict())
