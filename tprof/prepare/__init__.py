"""Taking the cold start out of the request path: plan, warm-up, bundles, buckets with a fallback, guard.

Whatever runs in a server needs the standard library and Triton only; making a plan reads recordings, and so needs more.
"""
