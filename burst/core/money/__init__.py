# SPDX-License-Identifier: MIT
"""What bursts cost: the ledger, who pays, and budgets."""
