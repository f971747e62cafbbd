# SPDX-License-Identifier: MIT
"""Pure decisions: the world and `now` come in as arguments, actions are values."""
