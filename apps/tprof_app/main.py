"""What `streamlit run` starts: `python -m streamlit run main.py -- [--root DIR] [--allow-nsys-rep] [SOURCE...]`."""

import sys

from tprof_app.frame import show
from tprof_app.served import Served

show(Served.parsed(sys.argv[1:]))
