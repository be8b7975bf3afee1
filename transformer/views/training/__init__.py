"""The figures of trainings: what is planned, the curves of runs, and a sentence's attention at each snapshot."""
