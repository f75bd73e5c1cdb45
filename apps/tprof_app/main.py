"""What `streamlit run` starts: `python -m streamlit run main.py -- SOURCE...`; no source: the samples."""

import sys

from tprof_app.overview import page

page(sys.argv[1:])
