"""The Streamlit app: thin pages over `tprof.analyze` and `tprof.present`, with the command line's own numbers."""
