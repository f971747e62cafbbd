# SPDX-License-Identifier: MIT
"""`burst watch`: a live screen of a lead, by Textual (extra `watch`)."""
