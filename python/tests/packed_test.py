"""Rows for a language model in Python: tensors, boundaries, and what a model
makes of them."""
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np

import penstock
from entry import main
from positions import has

SIZE, VOCABULARY = 24, 90


def tokens_of(document):
    return [(document * 5 + t * t) % VOCABULARY
            for t in range(document * 7 % 31)]


class Packed(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-packed-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = self.folder / "docs.jsonl"
        self.path.write_text("\n".join(
            json.dumps({"input_ids": tokens_of(d)}) for d in range(80)))

    def open(self, batch_size=4, fields=None, **options):
        loader = penstock.Loader(
            str(self.path),
            fields or {"tokens": {"tokens": {
                "column": "input_ids", "max_length": SIZE,
                "vocab_size": VOCABULARY, **options.pop("tokens", {})}}},
            batch_size, seed=3, device="cpu", **options)
        self.addCleanup(loader.close)
        return loader

    def test_len_counts_rows_and_an_epoch_has_every_document(self):
        loader = self.open(drop_last=False)
        seen = {}
        batches = 0
        for batch in loader:
            batches += 1
            arrays = batch.numpy()
            for name in ("input_ids", "labels", "position_ids",
                         "document_ids"):
                self.assertEqual((arrays[name].dtype, arrays[name].shape[1]),
                                 (np.int64, SIZE))
            ends = arrays["cu_seqlens"]
            self.assertEqual((ends.dtype, int(ends[-1])),
                             (np.int32, arrays["labels"].size))
            ids = arrays["input_ids"].ravel()
            documents = arrays["document_ids"].ravel()
            np.testing.assert_array_equal(
                np.flatnonzero(arrays["position_ids"].ravel() == 0), ends[:-1])
            for begin, end in zip(ends, ends[1:]):
                if documents[begin] >= 0:
                    seen.setdefault(int(documents[begin]), []).extend(
                        ids[begin:end].tolist())
        self.assertEqual(batches, len(loader))
        self.assertEqual({d: sorted(ids) for d, ids in seen.items()},
                         {d: sorted(tokens_of(d)) for d in range(80)
                          if tokens_of(d)})

    def test_a_state_in_the_middle_of_an_epoch_goes_on_there(self):
        def seen(batches):
            return [{name: array.tobytes() for name, array in b.numpy().items()}
                    for b in batches]
        first = self.open(tokens={"repack": True})
        all_of_two = seen(first.batches(2 * len(first)))
        again = self.open(tokens={"repack": True})
        for _ in again.batches(len(first) + 2):
            pass
        state = again.state_dict()
        resumed = self.open(num_workers=2, tokens={"repack": True})
        resumed.load_state_dict(state)
        self.assertEqual(seen(resumed.batches(3)),
                         all_of_two[len(first) + 2:len(first) + 5])

    def test_other_rows_than_those_of_a_state_are_refused(self):
        loader = self.open()
        next(iter(loader))
        with self.assertRaises(penstock.RequestError):
            self.open(tokens={"pack": "wrapped"}).load_state_dict(
                loader.state_dict())

    @unittest.skipUnless(has("torch"), "needs torch")
    def test_the_loss_is_that_of_the_documents_one_by_one(self):
        import torch
        from torch.nn import functional
        torch.manual_seed(1)
        table = torch.randn(VOCABULARY, 16, dtype=torch.float64)
        places = torch.randn(SIZE, 16, dtype=torch.float64)
        out = torch.randn(16, VOCABULARY, dtype=torch.float64)

        def losses(ids, labels, positions, documents):
            """Attention within a document, to what stands before; the sum of
            the losses of the next tokens."""
            hidden = table[ids] + places[positions]
            count = ids.shape[1]
            mask = torch.ones(count, count, dtype=torch.bool).tril()
            mask = mask & (documents[:, :, None] == documents[:, None, :])
            hidden = hidden + functional.scaled_dot_product_attention(
                hidden, hidden, hidden, attn_mask=mask)
            logits = hidden @ out
            return functional.cross_entropy(
                logits[:, :-1].reshape(-1, VOCABULARY),
                labels[:, 1:].reshape(-1), ignore_index=-100, reduction="sum")

        batch = next(iter(self.open(8))).torch()
        packed = losses(*(batch[name] for name in (
            "input_ids", "labels", "position_ids", "document_ids")))
        alone = 0
        ends = batch["cu_seqlens"].tolist()
        for begin, end in zip(ends, ends[1:]):
            one = {name: batch[name].reshape(-1)[None, begin:end]
                   for name in ("input_ids", "labels", "document_ids")}
            alone += losses(one["input_ids"], one["labels"],
                            torch.arange(end - begin)[None],
                            one["document_ids"])
        torch.testing.assert_close(packed, torch.as_tensor(alone))


if __name__ == "__main__":
    main()
