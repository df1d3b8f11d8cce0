{"cmd": ["demo", "--threads", "/home/user/.takopi/demo", "--resume", "068bed1727c1"], "stdin": "what do you remember? And what did I ask first?", "cwd": "/home/user/project", "rc": 0}
