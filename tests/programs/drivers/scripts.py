"""Scripts of a source, one after the other, with a line for each that ends without an error.

Each argument is the line of one: its file and what it is given.
"""

import os
import runpy
import shlex
import sys
import traceback

root = os.getcwd()
for line in sys.argv[1:]:
    file, *given = shlex.split(line)
    path = os.path.join(root, file)
    os.chdir(os.path.dirname(path))
    sys.argv = [path, *given]
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        good = not ended.code
    except BaseException:  # whatever it is, the next script is run
        traceback.print_exc()
        good = False
    else:
        good = True
    finally:
        sys.path.remove(os.path.dirname(path))
        os.chdir(root)
    print(f"{'PASSED' if good else 'FAILED'} {line}", flush=True)
