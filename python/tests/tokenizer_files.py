"""Small files of tokenizers of every family, made by the `tokenizers` library,
and texts that are hard to cut. By itself, this writes tests/golden/tokenizers:
what the library makes of some of those texts."""

import json
import pathlib
import random

import tokenizers
from tokenizers import (Regex, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

WORDS = ("the of and to in is that it for was on are as with his they at be this "
         "have from or one had by word but not what all were we when your can said "
         "there use an each which she do how their if will up other about out many "
         "then them these so some her would make like him into time has look two "
         "more write go see number no way could people my than first water been "
         "call who oil its now find long down day did get come made may part "
         "Zürich naïve café résumé Straße été über garçon jalapeño").split()
OTHERS = ("日本語 中文字符 한국어 русский язык ελληνικά हिन्दी ไทย עברית عربى "
          "def return self.x = {} ; // /* */ <html> & &amp; 3.14 2024 100,000 "
          "https://a.b/c?d=e don't I'm we're they've it's he'll e\u0301").split()


def corpus(lines=600, seed=1):
    drawn = random.Random(seed)
    made = []
    for _ in range(lines):
        words = [drawn.choice(WORDS) for _ in range(drawn.randint(3, 14))]
        words += [drawn.choice(OTHERS) for _ in range(drawn.randint(0, 3))]
        drawn.shuffle(words)
        line = " ".join(words)
        if drawn.random() < 0.3:
            line = line.capitalize() + drawn.choice(".!?")
        made.append(line)
    return made


PIECES = ["'s", "'LL", "'ſ", "'ﬆ", "ŉ", "\xa0", "\u3000", "\u2028", "\x85",
          "\u200b", "\ufeff", "\r\n", "\n\n \n", "²", "½", "Ⅻ", "１２", "٣",
          "\U0001f468\u200d\U0001f469", "漢字かな", "हिन्दी", "a" * 70, "-" * 100,
          "\U0001e900", "\U00011382\U000113c9", "\u0897", "e\u0301",
          "a\u0316\u0301", "\u1100\u1161\u11a8", "A日B", "aBcD", "//\n/", "ﬁ", "İ",
          "ǅ", "ẞ", "\u0958", "\uac00\u11a8", "\uffa1\uffc2", "㍿", "ﷺ",
          "\u0915\u094d\u0937", "\U0001f1e9\U0001f1ea\U0001f1eb", "<s>", "</s>",
          "[MASK]", "[CLS]", "<unk>", "<0x41>", "▁", "▁▁the", "##ing", "the", " the",
          "abc", "12345", "    ", "\0", "\x07", "\ufffd", "\u00ad", "don't", "I'm .",
          "\n" + " " * 80 + "\n", "été", "Zürich"]


def drawn_text(seed):
    """A text of 1 to 60 pieces that are hard to cut."""
    drawn = random.Random(seed)
    text = ""
    for _ in range(drawn.randint(1, 60)):
        kind = drawn.random()
        if kind < 0.45:
            text += drawn.choice("'' \n\r\tabstrevlLMD!/.-1_" +
                                 chr(drawn.randint(1, 127)))
        elif kind < 0.75:
            text += drawn.choice(PIECES)
        elif kind < 0.85:
            text += " " + drawn.choice(WORDS)
        else:
            most = drawn.choice([0x250, 0x3000, 0xA000, 0x110000])
            code = drawn.randrange(most)
            text += "x" if 0xD800 <= code < 0xE000 else chr(code)
    return text


def trained(model, trainer, normalizer=None, pre_tokenizer=None, decoder=None,
            post=None, lines=600):
    made = tokenizers.Tokenizer(model)
    if normalizer is not None:
        made.normalizer = normalizer
    if pre_tokenizer is not None:
        made.pre_tokenizer = pre_tokenizer
    made.train_from_iterator(corpus(lines), trainer)
    if decoder is not None:
        made.decoder = decoder
    if post is not None:
        made.post_processor = post
    return made


def bert(lowercase=True, **parts):
    made = trained(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(
            vocab_size=400, show_progress=False,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
        normalizers.BertNormalizer(lowercase=lowercase, **parts),
        pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return made


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def llama(fallback=True, legacy=True, scheme="first", fuse=True):
    """BPE as SentencePiece has it."""
    marks = ["<unk>", "<s>", "</s>"] + (BYTES if fallback else [])
    made = trained(
        models.BPE(unk_token="<unk>", byte_fallback=fallback, fuse_unk=fuse),
        trainers.BpeTrainer(vocab_size=700 if fallback else 420,
                            show_progress=False, special_tokens=marks,
                            limit_alphabet=90),
        pre_tokenizer=pre_tokenizers.Metaspace())
    document = json.loads(made.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    if legacy:
        document["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
        document["pre_tokenizer"] = None
    else:
        document["pre_tokenizer"] = {
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme,
            "split": False}
    document["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    made = tokenizers.Tokenizer.from_str(json.dumps(document))
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return made


def unigram(normalizer, fallback=False, pre_tokenizer=None):
    marks = ["<unk>", "<s>", "</s>"] + (BYTES if fallback else [])
    made = trained(
        models.Unigram(),
        trainers.UnigramTrainer(vocab_size=600 if fallback else 400,
                                show_progress=False, special_tokens=marks,
                                unk_token="<unk>"),
        normalizer, pre_tokenizer or pre_tokenizers.Metaspace(),
        decoders.Metaspace())
    if not fallback:
        return made
    document = json.loads(made.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    document["model"]["byte_fallback"] = True
    made = tokenizers.Tokenizer.from_str(json.dumps(document))
    made.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace()])
    return made


def byte_level(splitters, normalizer=None, **model):
    made = trained(
        models.BPE(**model),
        trainers.BpeTrainer(
            vocab_size=500, show_progress=False, special_tokens=["<s>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
        normalizer, pre_tokenizers.Sequence(splitters), decoders.ByteLevel(),
        processors.ByteLevel(trim_offsets=True))
    return made


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


STAY = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
# tiktoken's own text of cl100k, Qwen 3.5's, Kimi's, StarCoder-like ones.
POSSESSIVE = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?"
              r"[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
MARKS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?"
         r"[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
HAN = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
       r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
       r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
       r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
       r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def charsmap():
    """SentencePiece's own map nmt_nfkc, or None without that package."""
    try:
        import sentencepiece
    except ImportError:
        return None
    import base64
    import io
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, vocab_size=200,
        hard_vocab_limit=False, minloglevel=3)
    from sentencepiece import sentencepiece_model_pb2 as proto
    read = proto.ModelProto()
    read.ParseFromString(model.getvalue())
    return base64.b64encode(read.normalizer_spec.precompiled_charsmap).decode()


def precompiled(text):
    made = unigram(None)
    document = json.loads(made.to_str())
    document["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": text},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
    return tokenizers.Tokenizer.from_str(json.dumps(document))


def clip():
    return trained(
        models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
        trainers.BpeTrainer(vocab_size=400, show_progress=False,
                            special_tokens=["<unk>"], end_of_word_suffix="</w>"),
        normalizers.Sequence([
            normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Lowercase()]),
        pre_tokenizers.Sequence([
            split(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
                  "removed", True)]),
        decoders.BPEDecoder())


def everything():
    """Name -> tokenizer."""
    sequence = pre_tokenizers.Sequence
    files = {
        "bert": bert(), "bert_cased": bert(False),
        "bert_accents": bert(True, strip_accents=False, clean_text=False),
        "bert_plain": bert(False, handle_chinese_chars=False, strip_accents=True),
        "llama": llama(), "llama_metaspace": llama(legacy=False),
        "llama_always": llama(legacy=False, scheme="always"),
        "mistral_never": llama(legacy=False, scheme="never"),
        "bpe_unknown": llama(fallback=False),
        "bpe_unknown_apart": llama(fallback=False, fuse=False),
        "unigram": unigram(normalizers.NFKC()),
        "unigram_nmt": unigram(normalizers.Sequence([
            normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(),
            normalizers.Lowercase(), normalizers.Strip()])),
        "unigram_bytes": unigram(normalizers.NFD(), fallback=True),
        "unigram_words": unigram(None, pre_tokenizer=sequence(
            [pre_tokenizers.WhitespaceSplit(),
             pre_tokenizers.Metaspace(prepend_scheme="first")])),
        "word_level": trained(
            models.WordLevel(unk_token="<unk>"),
            trainers.WordLevelTrainer(vocab_size=300, show_progress=False,
                                      special_tokens=["<unk>"]),
            normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
            sequence([pre_tokenizers.Whitespace(),
                      pre_tokenizers.Digits(individual_digits=True)])),
        "possessive": byte_level([split(POSSESSIVE), STAY]),
        "marks": byte_level([split(MARKS), STAY], normalizers.NFC()),
        "han": byte_level([split(HAN), STAY]),
        "removed": byte_level([split(r"\w+|[^\w\s]+", "removed", True),
                               STAY], normalizers.NFKC()),
        "merged": byte_level([split(r"\s", "merged_with_next"),
                              split(r"[aeiou]", "merged_with_previous"),
                              split(r"\d", "contiguous"), STAY]),
        "digits": byte_level([
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=True)]),
        "gpt2_prefix": byte_level(
            [pre_tokenizers.ByteLevel(add_prefix_space=True)]),
        "clip": clip(),
        "behind": byte_level([split(r"(?<=\d)(?:\d{3})|x(?=y)|(?<!a)b+?|^c|d$|e{2,}"),
                              STAY]),
        "delimiter": trained(
            models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=9),
            trainers.WordPieceTrainer(vocab_size=300, show_progress=False,
                                      special_tokens=["[UNK]"]),
            normalizers.Strip(), pre_tokenizers.CharDelimiterSplit("e"))}
    map_of = charsmap()
    if map_of is not None:
        files["precompiled"] = precompiled(map_of)
    return files


def cases(made, texts):
    found = []
    for text in texts:
        plain = made.encode(text, add_special_tokens=False)
        whole = made.encode(text)
        found.append({"text": text, "ids": plain.ids, "offsets": plain.offsets,
                      "special": whole.ids,
                      "decoded": made.decode(plain.ids),
                      "all": made.decode(whole.ids, skip_special_tokens=False)})
    return found


def main():
    folder = (pathlib.Path(__file__).resolve().parents[2] /
              "tests/golden/tokenizers")
    folder.mkdir(exist_ok=True)
    for name, made in everything().items():
        if name == "precompiled":
            continue  # 300 KB of a map
        texts = [text for text in map(drawn_text, range(200)) if len(text) < 120]
        document = {"library": tokenizers.__version__,
                    "tokenizer": json.loads(made.to_str()),
                    "cases": cases(made, texts[:16])}
        (folder / f"{name}.json").write_text(json.dumps(
            document, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
