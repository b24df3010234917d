'use strict';
const fs = require('fs');

// A full-access token for the tests, written where the process that started this reads it.
module.exports = {
  register() {},
  async bootstrap({ strapi }) {
    const name = `tests-${Date.now()}`;
    const token = await strapi.service('admin::api-token').create({
      name,
      description: '',
      type: 'full-access',
      lifespan: null,
    });
    fs.writeFileSync(process.env.TOKEN_FILE, token.accessKey);
  },
};
