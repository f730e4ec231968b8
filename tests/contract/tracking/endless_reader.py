"""A reader of imports that never ends but by its limit of CPU time."""

import json
import resource
import sys

limit_s = json.loads(sys.argv[1])["cpu_limit_s"]
resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 5))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
while True:
    pass
