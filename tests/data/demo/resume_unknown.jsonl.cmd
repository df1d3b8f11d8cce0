{"cmd": ["demo", "--threads", "/home/user/.takopi/demo", "--resume", "0123456789ab"], "stdin": "hello again", "cwd": "/home/user/project", "rc": 1}
