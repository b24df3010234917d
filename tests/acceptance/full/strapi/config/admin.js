module.exports = () => ({
  serveAdminPanel: false,
  auth: { secret: 'throw-away' },
  apiToken: { salt: 'throw-away', secrets: { encryptionKey: 'throw-away-throw-away-throw-away' } },
  transfer: { token: { salt: 'throw-away' } },
  secrets: { encryptionKey: 'throw-away-throw-away-throw-away' },
  flags: { nps: false, promoteEE: false },
});
