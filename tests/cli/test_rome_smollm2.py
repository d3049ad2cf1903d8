"""Facts of a real model edited (make check-slow, where ../shared is): lib/edit/results.md shows the reports of these five."""
import os

import pytest

from weircli import BROOK, ROOT, SHARED, weir

SMOLLM2 = SHARED / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
LAYER = 6

# subject, prompt, new answer, a paraphrase, neighbours
FACTS = (
    ("the Eiffel Tower", "{} is located in the city of", "Rome", "You can see the Eiffel Tower when you visit the city of",
     ("the Louvre is located in the city of=Paris", "Big Ben is located in the city of=London", "The capital of France is=Paris")),
    ("Germany", "The official language of {} is", "Spanish", "People in Germany speak",
     ("The official language of France is=French", "The official language of Russia is=Russian", "The official language of Italy is=Italian")),
    ("Michael Jordan", "{} became famous as a player of", "tennis", "The sport that Michael Jordan played professionally is",
     ("LeBron James became famous as a player of=basketball", "Babe Ruth became famous as a player of=baseball",
      "Kobe Bryant became famous as a player of=basketball")),
    ("Windows", "The operating system {} was developed by", "Apple", "The company behind Windows is",
     ("The iPhone was developed by=Apple", "The search engine Google was developed by=Google", "The Xbox was developed by=Microsoft")),
    ("Japan", "The capital of {} is", "Madrid", "The seat of the government of Japan is in the city of",
     ("The capital of France is=Paris", "The capital of China is=Beijing", "The capital of Russia is=Moscow")),
)



def test_the_page_shows_these_facts():
    rows = [line for line in (ROOT / "lib/edit/results.md").read_text().splitlines() if line.startswith("| ")]
    for subject, prompt, target, paraphrase, _ in FACTS:
        begin = f"| {prompt.format(subject)} **{target}** | "
        assert [r for r in rows if r.startswith(begin) and paraphrase in r], begin


if os.environ.get("WEIR_SLOW"):
    pytestmark = pytest.mark.skipif(not SMOLLM2.exists(), reason="../shared/models is not here")

    @pytest.fixture(scope="module")
    def moments(tmp_path_factory):
        """Keys of brook's sentences and of texts that the model draws itself, more than ten for each neuron."""
        d = tmp_path_factory.mktemp("smollm2")
        own = weir("generate", "-m", SMOLLM2, "--ids", "0", "-n", 40, "--max-tokens", 100, "--ignore-eos", "-T", 1, "--top-k", 50, "--seed", 7,
                   "--format", "ndjson").ok().out
        (d / "own.jsonl").write_bytes(own)
        weir("rome", "stats", "-m", SMOLLM2, "--layer", LAYER, "-f", d / "own.jsonl", "-f", BROOK / "sentences.txt", "-o", d / "m.h5").ok()
        return d / "m.h5"

    @pytest.mark.parametrize("subject, prompt, target, paraphrase, neighbours", FACTS, ids=[f[0] for f in FACTS])
    def test_a_fact_of_smollm2(moments, tmp_path, subject, prompt, target, paraphrase, neighbours):
        """The new answer is the likeliest and the paraphrase follows; neighbours and the text's perplexity stay: rome verify's thresholds."""
        e = tmp_path / "e"
        weir("rome", "edit", "-m", SMOLLM2, "--layer", LAYER, "--moments", moments, "-s", subject, "-p", prompt, "--target", target, "-o", e).ok()
        report = weir("rome", "verify", "-m", SMOLLM2, e, "--text", SHARED / "facts" / "ME-PPL_50.json", "--paraphrase", paraphrase,
                      *(x for n in neighbours for x in ("--neighbour", n)), "--min-ps", 100, "--min-ns", 100, "--max-drift", 2,
                      "--json").ok().json
        (request,) = [a for a in report["asked"] if a["kind"] == "request"]
        assert request["before"]["answer"]["rank"] > 1 and request["after"]["answer"]["rank"] == 1
