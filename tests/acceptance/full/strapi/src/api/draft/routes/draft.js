'use strict';
module.exports = require('@strapi/strapi').factories.createCoreRouter('api::draft.draft');
