# SPDX-License-Identifier: MIT
"""A lead in a user's own allocation: a batch job that bursts.

submit             `burst lead batch`: runs flux batch
start_broker       each task: starts the broker of its node
run_script         initial program of rank 0: the daemon and the user's script
daemon_supervisor  starts the daemon again if it fails
reap               takes down all bursts of a lead whose job has ended
batch_plan         the lead's plan, from request, R and settings
lead_directory     the files of one lead
"""
