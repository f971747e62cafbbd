# SPDX-License-Identifier: MIT
"""`burst demo`: the whole path of a burst on this machine, with a user's commands.

It has no way of its own into anything: it writes a lead as `burst lead init` does,
starts it and `burst daemon` as processes, submits by the lead's own command, and asks
the service `burst` how far it is.

    play        the whole evening: prepare, tell, tidy, report
    story       what happens in which order, and what is waited for
    parts       the four jobs, and what each is to come to      pure
    kinds       an embedded lead, a Flux lead: their commands   pure
    place       the private directory and the files in it
    processes   everything that is started, and how it ends
    stop        Ctrl-C
    tidy        takes all down and counts what is left
    scene       what is seen at a moment, and what changed      pure
    view        shows scenes: live, or a line for each change
    record      what the story came to, and its faults          pure
    ending      the report at the end
    picture     the timeline as SVG                             pure
"""
