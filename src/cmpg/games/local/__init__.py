"""Agents with their own states and dynamics, who meet only at shared resources."""
