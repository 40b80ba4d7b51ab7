document.querySelector('#app').textContent = 'fairlead';
