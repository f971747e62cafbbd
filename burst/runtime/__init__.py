# SPDX-License-Identifier: MIT
"""The running daemon: engine, executor, record store, service, provider tracker."""
