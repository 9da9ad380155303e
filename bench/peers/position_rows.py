"""What a user of torch and sqlite3 writes for the demo's rows: one row becomes three
tensors, and a data set sends a query per sample."""
import math
import sqlite3

import numpy as np
import orjson
import torch
from torch.utils.data import Dataset

KEYS = ["snr_db", "freq_offset_hz", "lat", "lon", "alt_m", "signal_present"]
MAX = 10
COLUMNS = "receivers, tx_lat, tx_lon"


class Rules:
    """Mean and divisor of each number, or none."""

    def __init__(self, statistics_json=None):
        def pair(entry):
            return entry["mean"], entry["divisor"]
        self.keys = np.tile([[0.0], [1.0]], len(KEYS))
        self.target = np.tile([[0.0], [1.0]], 2)
        if statistics_json:
            fields = statistics_json
            self.keys = np.array(
                [pair(fields["receivers"][k]) for k in KEYS]).T
            self.target = np.array(
                [pair(fields["target"][c]) for c in ("tx_lat", "tx_lon")]).T


def tensors_of(row, rules):
    receivers, lat, lon = row
    if not isinstance(receivers, list):
        receivers = orjson.loads(receivers)
    receivers.sort(key=strength)
    receivers = receivers[:MAX]
    values = np.array([[heard.get(key) for key in KEYS] for heard in receivers],
                      dtype=np.float64)  # None becomes NaN
    values = np.nan_to_num((values - rules.keys[0]) / rules.keys[1])
    padded = np.zeros((MAX, len(KEYS)), np.float32)
    padded[:len(receivers)] = values
    mask = np.zeros(MAX, np.float32)
    mask[:len(receivers)] = 1
    target = ((np.array([lat, lon]) - rules.target[0]) / rules.target[1])
    return (torch.from_numpy(padded), torch.from_numpy(mask),
            torch.from_numpy(target.astype(np.float32)))


def strength(heard):
    snr = heard.get("snr_db")
    return math.inf if snr is None else -snr


class PerSample(Dataset):
    """One query per sample, on a connection that each process keeps."""

    def __init__(self, keys, rules):
        self.keys, self.rules, self.connection = keys, rules, None

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, at):
        if self.connection is None:
            self.connection = self.connect()
        return tensors_of(self.fetch(self.connection, self.keys[at]),
                          self.rules)


class Sqlite(PerSample):
    def __init__(self, keys, rules, path):
        super().__init__(keys, rules)
        self.path = path

    def connect(self):
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)

    def fetch(self, connection, key):
        return connection.execute(
            f"SELECT {COLUMNS} FROM measurements WHERE id = ?",
            (key,)).fetchone()
