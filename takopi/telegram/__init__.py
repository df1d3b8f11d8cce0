"""The Bot API as a transport: updates go to the inbox, and sends become messages in chats."""
