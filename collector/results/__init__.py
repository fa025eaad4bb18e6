"""From what the tools printed to samples: netperf's command lines and answers, many sessions at
once, CPU time, the ``harvest`` of a run; ``collect`` takes files that no run recorded.
"""
