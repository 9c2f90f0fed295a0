"""The shadow repository: plain git on disk, read and written here and nowhere else.

Turns must cost what they touch, and `import dulwich` alone costs as much as a whole interpreter start (10.8 ms against
10.9; `dulwich.pack` 40). So what every turn needs (trees, packs, refs, commits) is written here on zlib, hashlib and
struct; dulwich serves the commands that have the time: verification, configuration, and later the wire protocols.

Object ids are 20 raw bytes, paths are bytes with `/` between parts, modes are the bytes of git's trees.
"""
