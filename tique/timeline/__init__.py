"""Snapshots and timestamps: which commits a transaction sees, and which may be folded.

:class:`~tique.timeline.local.Timeline` is that of a process that has the database to
itself, :class:`~tique.timeline.shared.SharedTimeline` that of one among others, with a
lease; :mod:`~tique.timeline.following` brings the commits of the others. A timeline
begins with recovery (:mod:`~tique.timeline.recovery`).
"""
