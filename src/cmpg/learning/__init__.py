"""The model is unknown: simulators, confidence, and the learners."""
