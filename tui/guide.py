"""What `--help` teaches, apart from the options. Lines of 80 characters, as help is read on any terminal."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.parameters import FIELDS
from .settings import KEYS_VARIABLE, SETTINGS, variable_of


@dataclass(frozen=True)
class Guide:
    """The words around the options of one command."""

    usage: str
    description: str
    epilog: str


APP = Guide(
    usage="""attn-tui [FILE] [parameters]
       attn-tui report [parameters] [--format FORMAT] [-o FILE]
       attn-tui sweep [--d-k GRID] [--vary NAME=VALUES] [parameters] [...]
       attn-tui softmax [--scores X,X,...] [--temperature X] [...]
       attn-tui rules [--sort COLUMN] [--mechanisms] [parameters] [...]
       attn-tui inspect FILE [--layer I] [--head H] [--scale RULE] [...]
       attn-tui claims [--format FORMAT] [-o FILE]
       attn-tui cost [--d-model N] [--heads N] [--preset NAME] [...]""",
    description="""\
See, predict and debug the scale in scaled dot-product attention, from a
terminal.

Why divide by √d_k? The Lab draws random queries and keys and shows their
logits, attention weights and softmax gradients unscaled beside scaled; every
key recomputes. With FILE, the app also opens the queries and keys of a real
model. With no terminal on stdout it prints instead: the report, or the
inspection of FILE.

commands:
  report    print what the Lab shows: a table, JSON, CSV or Markdown
  sweep     print how it changes over d_k, and over another parameter
  softmax   work out softmax of a handful of scores, step by step
  rules     print every scale rule side by side, or mechanisms over d_k
  inspect   print what the heads in a file do with their queries and keys
  claims    put to the test what study notes say about √d_k
  cost      count a layer's parameters, its KV cache and its FLOPs
  attn-tui COMMAND --help says more.""",
    epilog="""\
keys in the app:
  left right   d_k - 1, d_k + 1    up down     the next power of two
  0-9          type d_k            pgup pgdn   the next width of a real model
  s S          scale rule          [ ]         half as many keys, twice as many
  c            component law       x           mask
  r            redraw              t           exact values in place of ±
  v            another view        Tab         fields, table
  m            mechanism; in Rules, mechanisms over d_k
  e            export to a file    y           copy the command
  > <          next, last pane     ? q         help, quit

examples:
  attn-tui                                   the Lab, as it was left
  attn-tui --d-k 512 --scale d_k             the Lab, from there
  attn-tui capture.safetensors               the heads in a file
  attn-tui report --d-k 256 --format json    numbers for a script
""",
)

_REPORT = Guide(
    usage="attn-tui report [parameters] [--format FORMAT] [-o FILE]",
    description="""\
Draw random queries and keys, and print the statistics of their attention
unscaled and under a scale rule: the Lab's table, sentence and histograms.
Every ± is a standard error over the independent draws of the batch; theory is
the exact value, where one is known.""",
    epilog="""\
examples:
  attn-tui report                                   d_k 64, scaled by 1/√d_k
  attn-tui report --d-k 512 --scale d_k             another width, another rule
  attn-tui report --scale 0.05                      your own multiplier
  attn-tui report --n-keys 4096 --mask causal       a long context
  attn-tui report --components student_t --d-k 16   heavy tails
  attn-tui report --format json | jq '.columns[1].measured.entropy'
  attn-tui report --format csv -o report.csv        a line for each value

Results go to stdout, messages and progress to stderr. Exit status: 0, or 2 for
what is not accepted.
""",
)

_SWEEP = Guide(
    usage="""attn-tui sweep [--d-k GRID] [--vary NAME=VALUES] [parameters]
                      [--statistics NAMES] [--stderr X [--of STATISTIC]
                      [--most-draws N]] [--format FORMAT] [-o FILE]""",
    description="""\
Print the statistics of attention over many d_k, a line for each, unscaled and
under a scale rule, beside the exact values. The draws are nested: the queries
and keys at one d_k are the first components of those at a larger one, so that a
whole curve costs little more than its largest point, and is smooth.

The output says which command gives it again, byte for byte. Ctrl-C ends a sweep
with what is done so far: its points are written as they are, JSON says
"complete": false, and the exit status is 130.""",
    epilog="""\
examples:
  attn-tui sweep                                    1 to 4096, evenly on a log axis
  attn-tui sweep --d-k 16,64,256 --statistics entropy,max_weight
  attn-tui sweep --d-k 1:512 --format csv -o curve.csv    a line for each value
  attn-tui sweep --d-k 16,64 --vary n-keys=64,512,4096    a longer context
  attn-tui sweep --vary scale=sqrt_d_k,d_k,log_d_k --d-k 2:1024:log10
  attn-tui sweep --d-k 64 --stderr 0.0005 --of entropy_fraction
  attn-tui sweep --format json | jq '.points[] | [.d_k, .columns[0].measured.entropy]'

A table shows standard errors too where few enough statistics are asked for; the
other formats always do. Results go to stdout, messages and progress to stderr.
Exit status: 0, 2 for what is not accepted, or 130 after Ctrl-C.
""",
)

_RULES = Guide(
    usage="""attn-tui rules [--sort COLUMN] [--reverse] [parameters]
                      [--format FORMAT] [-o FILE]
       attn-tui rules --mechanisms [parameters] [--format FORMAT] [-o FILE]""",
    description="""\
Print what every scale rule makes of the same queries and keys, a line for each:
its multiplier, the deviation of its logits, entropy, the largest weight, the
typical gradient of a query, dead rows, scores that the number format cannot
hold, and entropy over d_k. A row is what attn-tui report --scale RULE measures.
Entropy over d_k is measured on a sample of the rows, with nested draws.

With --mechanisms, print instead what mechanisms make of them at d_k 16 to 1024,
each under the rule it is used with and without a soft-cap; the largest score
that was drawn; and the bound of scores, where there is one.

The output says which command gives it again, byte for byte.""",
    epilog="""\
examples:
  attn-tui rules                                    d_k 64, 128 keys
  attn-tui rules --d-k 512 --sort entropy_fraction  another width, soft ones first
  attn-tui rules --precision float16 --sort score-overflow
  attn-tui rules --position 131071 --context-factor 32 --format markdown
  attn-tui rules --format json | jq '.rules[] | [.rule, .multiplier]'
  attn-tui rules --mechanisms --format csv -o mechanisms.csv

Results go to stdout, messages and progress to stderr. Exit status: 0, 2 for
what is not accepted, or 130 after Ctrl-C.
""",
)

_INSPECT = Guide(
    usage="""attn-tui inspect FILE [--layer I] [--head H] [--scale RULE]
                        [--axes AXES] [--format FORMAT] [-o FILE]""",
    description="""\
Read captured queries and keys, and print what their attention does: a line for
each head, or, for one head, its whole table and histograms. A head is called
  nearly uniform   if its entropy is above 98 % of the largest possible,
  sink             if the first key holds more than 30 % of the weight,
  one-hot          if the largest weight of a row is above 95 % on average.""",
    epilog="""\
examples:
  attn-tui inspect heads.npz                              every head
  attn-tui inspect heads.npz --layer 3 --head 5           one head in full
  attn-tui inspect heads.npz --scale 0.125                another multiplier
  attn-tui inspect heads.npz --axes batch,token,head,d_k  which axis is which
  attn-tui inspect heads.npz --format csv | grep one_hot_rows

Results go to stdout, messages and progress to stderr. Exit status: 0, or 2 for
what cannot be read; heads that can be are printed all the same.
""",
)

_CLAIMS = Guide(
    usage="attn-tui claims [--format FORMAT] [-o FILE]",
    description="""\
Put to the test what widely copied study notes say about √d_k: each claimed
figure beside the one measured now, with its standard error, and the exact one
where theory has it. The verdict is computed from them: holds, holds in the
limit, does not hold, or not testable here. It takes some seconds.""",
    epilog="""\
examples:
  attn-tui claims                        every claim, its figures and verdict
  attn-tui claims --format markdown      a line for each
  attn-tui claims --format json | jq '.claims[] | .id + ": " + .verdict'

Results go to stdout, messages and progress to stderr.
""",
)

_COST = Guide(
    usage="""attn-tui cost [--preset NAME] [--d-model N] [--heads N] [...]
                     [--format FORMAT] [-o FILE]""",
    description="""\
Count what a layer of attention costs: its parameters matrix by matrix, the
bytes of its KV cache for a token and for a context, its FLOPs for the next
token and for the whole context, and the d_k that follows from its shape.
Models with latent attention, such as DeepSeek-V3, have other matrices; they
are not among the presets.""",
    epilog="""\
examples:
  attn-tui cost --d-model 512 --heads 8              the Transformer paper's
  attn-tui cost --d-model 4096 --heads 32 --kv-heads 8 --layers 32
  attn-tui cost --preset llama-3-8b                  a model's own
  attn-tui cost --preset llama-3-8b --context 131072 --cache-format float16
  attn-tui cost --preset gpt2 --format json | jq .kv_cache.bytes_per_token

Results go to stdout, messages to stderr. Exit status: 0, or 2 for what is not
accepted.
""",
)

_SOFTMAX = Guide(
    usage="""attn-tui softmax [--scores X,X,...] [--temperature X] [--shift X]
                        [--scale RULE] [--d-k N] [--format FORMAT] [-o FILE]""",
    description="""\
Work out softmax of a handful of scores step by step, unscaled beside scaled:
logits, exponentials with the largest logit subtracted, weights, p(1-p), the
Jacobian, the entropy, and what exponentials with nothing subtracted would come
to in a number format.""",
    epilog="""\
examples:
  attn-tui softmax                                the scores of study notes
  attn-tui softmax --scores 1,2,3 --scale 0.5     others, another multiplier
  attn-tui softmax --scores -24,-10,0,10,24 --d-k 256
  attn-tui softmax --temperature 8                what a temperature of sqrt(64) does
  attn-tui softmax --shift 800                    no weight moves, naive exp overflows
  attn-tui softmax --precision float16            where exp overflows in float16
  attn-tui softmax --format json | jq '.columns[1].weights'

Results go to stdout, messages to stderr. Exit status: 0, or 2 for what is not
accepted.
""",
)


def settings_guide() -> str:
    """What the app remembers, where, and what goes before it."""
    from .remember import config_file

    rows = [(setting.name, setting.variable, setting.help) for setting in SETTINGS]
    rows.append(("[parameters]", f"{variable_of(FIELDS[0])} ...", "the parameters, by the names of the options"))
    rows.append(("[keys]", KEYS_VARIABLE, "other keys: quit=ctrl+x lab.redraw=n"))
    table = "\n".join(f"  {name:<14}{variable:<20}{help}" for name, variable, help in rows)
    return f"""\
settings of the app, in the environment, or in the file
  {config_file()}
{table}
  On leaving, the app puts its last parameters into the file, to begin with them
  the next time; R in the Lab goes back to the defaults. The environment goes
  before the file, the command line before both. Commands that print have no
  settings: a script says the same everywhere.
"""


GUIDES = {
    "report": _REPORT,
    "sweep": _SWEEP,
    "softmax": _SOFTMAX,
    "rules": _RULES,
    "inspect": _INSPECT,
    "claims": _CLAIMS,
    "cost": _COST,
}
