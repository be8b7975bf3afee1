"""Who may see and change which runs and uploads: people, owners, what is shared, the audit log.

Every path to a run or an upload asks here, whichever page, link, message or command it comes from: `people.acting`
says for whom the code runs, `ownership` decides. How a server recognises a person is the pages' affair.
"""
