"""`python -m bench.accuracy`: one JSON line a data set, and `all`.

Errors are of iteration time, relative to the measured one. `median_ape`, `mean_ape`, `p90_ape` and `coverage_80` predict each
publication with parameters fitted without it; `in_sample_*` with all. `baseline_*` is 6 FLOPs a parameter and token at 40 % of the
dense peak; `constant_rate_*` the table's own median share of the peak, in-sample. `left_out` counts rows left out, by reason.
"""

from __future__ import annotations

import json

from bench.accuracy.score import summaries


def main() -> None:
    for summary in summaries():
        print(json.dumps(summary))


if __name__ == "__main__":
    main()
